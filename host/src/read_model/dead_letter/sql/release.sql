-- Streams behind which nothing waits any more.
DELETE FROM {control}.parked_streams p
WHERE p.projection = $1 AND p.generation = $2 AND p.stream = ANY ($3)
  AND NOT EXISTS (
      SELECT FROM {control}.dead_letters d
      WHERE d.projection = $1 AND d.generation = $2 AND d.stream = p.stream AND d.resolved_at IS NULL AND d.parked)
