-- Attempts at an event that ended without blaming it.
UPDATE {control}.checkpoints
SET attempts = 0, attempts_position = NULL, updated_at = clock_timestamp()
WHERE projection = $1 AND generation = $2 AND term = $3 AND term_id = $4 AND attempts_position = $5
