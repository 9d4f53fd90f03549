-- A checkpoint as it stands, for a leader that starts or starts again.
SELECT position, last_event_position, last_event_id, term, term_id, revision, state, paused_at IS NOT NULL,
       failure_category, failure_position, failure_message, starts_without_commit, attempts_position, attempts,
       accepted
FROM {control}.checkpoints
WHERE projection = $1 AND generation = $2
