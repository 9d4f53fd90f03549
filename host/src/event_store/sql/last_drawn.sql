-- The last number that a sequence has given, or the one before the first that it will give. Also part of a larger statement.
SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM {sequence}
