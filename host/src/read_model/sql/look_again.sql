-- Makes a run that stands behind its own commits begin anew from where the row stands.
UPDATE {control}.checkpoints
SET revision = revision + 1, updated_at = clock_timestamp()
WHERE projection = $1 AND generation = $2 AND term = $3 AND term_id = $4 AND position = $5
