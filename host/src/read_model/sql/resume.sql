-- Clears a pause and a failure; the leader goes on at the checkpoint. What the leader may take as it finds it is
-- recorded in any state, once, and lapses with its next start or commit.
UPDATE {control}.checkpoints c
SET paused_at = NULL, paused_reason = NULL, failure_category = NULL, failure_position = NULL,
    failure_event_type = NULL, failure_event_id = NULL, failure_message = NULL, failure_at = NULL,
    failure_stream = NULL, failure_table = NULL, failure_column = NULL,
    attempts = 0, attempts_position = NULL, starts_without_commit = 0, accepted = $2,
    state = 'starting', state_since = clock_timestamp(), revision = revision + 1, updated_at = clock_timestamp()
FROM {control}.generations g
WHERE g.projection = c.projection AND g.generation = c.generation AND g.live AND c.projection = $1
  AND (c.paused_at IS NOT NULL OR c.failure_at IS NOT NULL OR ($2 IS NOT NULL AND c.accepted IS DISTINCT FROM $2))
