-- The event at a position, the last event up to another one, and the head.
SELECT (SELECT id::text FROM {table} WHERE position = $1),
       last.position, last.id::text,
       coalesce((SELECT max(position) FROM {table}), 0)
FROM (SELECT 1) AS one
LEFT JOIN LATERAL (SELECT position, id FROM {table} WHERE position <= $2 ORDER BY position DESC LIMIT 1) AS last ON true
