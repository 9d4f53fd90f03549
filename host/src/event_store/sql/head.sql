-- The highest visible position.
SELECT coalesce(max(position), 0) FROM {table}
