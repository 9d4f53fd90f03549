-- The generation goes on with a store that is not the one that was read, as somebody allowed: what that store
-- holds after the checkpoint is new, and a checkpoint beyond its head falls back to the head.
UPDATE {control}.checkpoints
SET accepted = NULL, last_event_position = $6, last_event_id = $7, position = least(position, $5),
    revision = revision + 1, updated_at = clock_timestamp()
WHERE projection = $1 AND generation = $2 AND term = $3 AND term_id = $4 AND accepted = 'store'
