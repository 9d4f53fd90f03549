-- The event at a position, and the head.
SELECT (SELECT id::text FROM {table} WHERE position = $1), coalesce((SELECT max(position) FROM {table}), 0)
