-- Streams of these dead letters behind which nothing waits any more.
DELETE FROM {control}.parked_streams p
USING {control}.dead_letters r
WHERE r.id = ANY ($1) AND p.projection = r.projection AND p.generation = r.generation AND p.stream = r.stream
  AND NOT EXISTS (
      SELECT FROM {control}.dead_letters d
      WHERE d.projection = p.projection AND d.generation = p.generation AND d.stream = p.stream
        AND d.resolved_at IS NULL AND d.parked)
