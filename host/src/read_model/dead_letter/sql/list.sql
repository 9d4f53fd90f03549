-- Dead letters as people see them, each with the first open one of its stream and how many stand behind it.
SELECT d.id, d.projection, d.generation, d.position, d.stream, d.event_id, d.event_type, d.category, d.message,
       d.table_name, d.column_name, d.parked, d.attempts,
       (extract(epoch FROM d.created_at) * 1000000)::bigint, (extract(epoch FROM d.failed_at) * 1000000)::bigint,
       (extract(epoch FROM d.retry_at) * 1000000)::bigint, d.retry_following, d.retry_attempts,
       (extract(epoch FROM d.resolved_at) * 1000000)::bigint, d.resolution,
       (SELECT f.id FROM {control}.dead_letters f
        WHERE f.projection = d.projection AND f.generation = d.generation AND f.stream = d.stream
          AND f.resolved_at IS NULL
        ORDER BY f.position LIMIT 1),
       (SELECT count(*) FROM {control}.dead_letters b
        WHERE b.projection = d.projection AND b.generation = d.generation AND b.stream = d.stream
          AND b.resolved_at IS NULL AND b.position > d.position)
FROM {control}.dead_letters d
WHERE ($1::text IS NULL OR d.projection = $1) AND ($2 OR d.resolved_at IS NULL)
  AND ($3::bigint[] IS NULL OR d.id = ANY ($3))
ORDER BY d.projection, d.generation, d.position
LIMIT $4
