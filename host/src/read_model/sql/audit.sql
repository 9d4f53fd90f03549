-- Who changed what.
INSERT INTO {control}.audit (actor, action, projection, detail) VALUES ($1, $2, $3, $4::jsonb)
