-- A start of a projection: counted until its first commit clears the count.
UPDATE {control}.checkpoints
SET starts_without_commit = starts_without_commit + 1, accepted = NULL, updated_at = clock_timestamp()
WHERE projection = $1 AND generation = $2 AND term = $3 AND term_id = $4 AND paused_at IS NULL AND failure_at IS NULL
