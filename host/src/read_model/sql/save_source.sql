-- How far the store is settled, and what is waited for. With $9 its commit waits for no disk: what a crash of the server
-- takes is found out again.
INSERT INTO {control}.sources AS s
    (source, system_identifier, timeline, settled_upto, head, held_position, held_since, held_by,
     event_position, event_id)
SELECT $1::text, $2::text, $3::text, $4::bigint, $5::bigint, $6::bigint, $7::timestamptz, $8::jsonb,
       $10::bigint, $11::text
FROM (SELECT CASE WHEN $9 THEN set_config('synchronous_commit', 'off', true) END) AS disk
ON CONFLICT (source) DO UPDATE
SET system_identifier = EXCLUDED.system_identifier, timeline = EXCLUDED.timeline,
    settled_upto = EXCLUDED.settled_upto, head = EXCLUDED.head, held_position = EXCLUDED.held_position,
    held_since = EXCLUDED.held_since, held_by = EXCLUDED.held_by, event_position = EXCLUDED.event_position,
    event_id = EXCLUDED.event_id, updated_at = clock_timestamp()
