-- By which event a store is known again.

ALTER TABLE {control}.sources
    ADD COLUMN event_position bigint,
    ADD COLUMN event_id       text;
COMMENT ON COLUMN {control}.sources.event_id IS 'The event that stood at event_position, the last one up to settled_upto; tells a restored store from the one that was read.';
COMMENT ON COLUMN {control}.checkpoints.last_event_id IS 'The event that stood at last_event_position when it was scanned, wanted or not; tells a restored store from the one that was read.';
