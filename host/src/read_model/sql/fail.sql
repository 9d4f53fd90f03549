-- The projection stops at a failure, which stays until somebody resumes it.
UPDATE {control}.checkpoints
SET state = 'stopped', state_since = clock_timestamp(),
    failure_category = $6, failure_position = $7, failure_event_type = $8, failure_event_id = $9,
    failure_message = $10, failure_stream = $11, failure_table = $12, failure_column = $13, failure_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE projection = $1 AND generation = $2 AND term = $3 AND term_id = $4 AND revision = $5
