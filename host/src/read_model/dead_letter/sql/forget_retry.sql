-- An attempt at a dead letter that the database failed.
UPDATE {control}.dead_letters d
SET retry_begun = 0
FROM {control}.checkpoints c
WHERE c.projection = $1 AND c.generation = $2 AND c.term = $3 AND c.term_id = $4
  AND d.projection = c.projection AND d.generation = c.generation AND d.id = $5
