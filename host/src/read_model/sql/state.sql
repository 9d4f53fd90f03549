-- A change of state that people see.
UPDATE {control}.checkpoints
SET state = $5, state_since = clock_timestamp(), updated_at = clock_timestamp()
WHERE projection = $1 AND generation = $2 AND term = $3 AND term_id = $4 AND state <> $5
  AND paused_at IS NULL AND failure_at IS NULL
