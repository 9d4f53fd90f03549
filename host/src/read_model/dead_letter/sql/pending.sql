-- A dead letter that is still to be tried: one of these, or with $2 any of their streams.
SELECT p.id, p.projection
FROM {control}.dead_letters p
WHERE p.resolved_at IS NULL AND p.retry_at IS NOT NULL
  AND (p.id = ANY ($1)
       OR $2 AND (p.projection, p.generation, p.stream) IN (
           SELECT d.projection, d.generation, d.stream FROM {control}.dead_letters d WHERE d.id = ANY ($1)))
ORDER BY p.position
LIMIT 1
