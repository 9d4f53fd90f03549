-- How far the store is settled, and what is waited for.
INSERT INTO {control}.sources AS s
    (source, system_identifier, timeline, settled_upto, head, held_position, held_since, held_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb)
ON CONFLICT (source) DO UPDATE
SET system_identifier = EXCLUDED.system_identifier, timeline = EXCLUDED.timeline,
    settled_upto = EXCLUDED.settled_upto, head = EXCLUDED.head, held_position = EXCLUDED.held_position,
    held_since = EXCLUDED.held_since, held_by = EXCLUDED.held_by, updated_at = clock_timestamp()
