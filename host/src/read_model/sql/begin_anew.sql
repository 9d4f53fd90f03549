-- The checkpoint goes back to where the generation began, and nothing of what stopped it before counts any more.
UPDATE {control}.checkpoints c
SET position = g.start_position, last_event_position = NULL, last_event_id = NULL,
    failure_category = NULL, failure_position = NULL, failure_event_type = NULL, failure_event_id = NULL,
    failure_message = NULL, failure_at = NULL, failure_stream = NULL, failure_table = NULL, failure_column = NULL,
    starts_without_commit = 0, attempts = 0, attempts_position = NULL,
    accepted = NULL, state = CASE WHEN paused_at IS NULL THEN 'starting' ELSE 'paused' END,
    state_since = clock_timestamp(), revision = revision + 1, updated_at = clock_timestamp()
FROM {control}.generations g
WHERE g.projection = c.projection AND g.generation = c.generation
  AND c.projection = $1 AND c.generation = $2 AND c.term = $3 AND c.term_id = $4
