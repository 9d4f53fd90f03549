-- The fence of a retried dead letter: the checkpoint's row is taken, and stays where it is.
UPDATE {control}.checkpoints
SET updated_at = clock_timestamp()
WHERE projection = $1 AND generation = $2 AND term = $3 AND term_id = $4 AND revision = $5 AND position = $6
  AND paused_at IS NULL AND failure_at IS NULL
