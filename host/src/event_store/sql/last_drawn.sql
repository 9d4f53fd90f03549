SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM {sequence}
