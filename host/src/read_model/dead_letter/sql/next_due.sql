-- The next dead letter that is to be tried again. Only the first open one of a stream may be.
SELECT d.id, d.position, d.stream, d.event_id, d.retry_attempts,
       greatest(0, extract(epoch FROM d.retry_at - clock_timestamp()))::double precision
FROM {control}.dead_letters d
WHERE d.projection = $1 AND d.generation = $2 AND d.retry_at IS NOT NULL AND d.resolved_at IS NULL
  AND NOT EXISTS (
      SELECT FROM {control}.dead_letters e
      WHERE e.projection = $1 AND e.generation = $2 AND e.stream = d.stream AND e.position < d.position
        AND e.resolved_at IS NULL)
ORDER BY d.retry_at, d.position
LIMIT 1
