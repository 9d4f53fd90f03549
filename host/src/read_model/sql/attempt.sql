-- An attempt at a single event while isolating, written down before it is made.
UPDATE {control}.checkpoints
SET attempts = CASE WHEN attempts_position = $5 THEN attempts + 1 ELSE 1 END,
    attempts_position = $5,
    updated_at = clock_timestamp()
WHERE projection = $1 AND generation = $2 AND term = $3 AND term_id = $4 AND revision = $6
RETURNING attempts
