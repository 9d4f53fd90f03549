-- An attempt at a dead letter begins, written down before it is made.
UPDATE {control}.dead_letters d
SET retry_begun = d.retry_begun + 1
FROM {control}.checkpoints c
WHERE c.projection = $1 AND c.generation = $2 AND c.term = $3 AND c.term_id = $4
  AND d.projection = c.projection AND d.generation = c.generation AND d.id = $5
  AND d.retry_at IS NOT NULL AND d.resolved_at IS NULL
RETURNING d.retry_begun
