-- First statement of every batch: moves the checkpoint, if this term and nobody else stands where it was read.
UPDATE {control}.checkpoints
SET position = $1,
    last_event_position = coalesce($2, last_event_position),
    last_event_id = coalesce($3, last_event_id),
    starts_without_commit = 0,
    attempts = 0,
    attempts_position = NULL,
    accepted = NULL,
    updated_at = clock_timestamp()
WHERE projection = $4 AND generation = $5 AND term = $6 AND term_id = $7 AND position = $8 AND revision = $9
  AND paused_at IS NULL AND failure_at IS NULL
