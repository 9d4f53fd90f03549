-- What somebody allowed has been used, or there was nothing to use it for.
UPDATE {control}.checkpoints SET accepted = NULL, updated_at = clock_timestamp()
WHERE projection = $1 AND generation = $2 AND term = $3 AND term_id = $4
