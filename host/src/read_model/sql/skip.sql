-- The event at which the projection stands failed becomes a dead letter, and the checkpoint passes it.
WITH standing AS (
    SELECT c.*
    FROM {control}.checkpoints c
    JOIN {control}.generations g USING (projection, generation)
    WHERE g.live AND c.projection = $1 AND c.failure_at IS NOT NULL AND c.failure_position = $2 AND c.position < $2
    FOR UPDATE OF c
), letter AS (
    INSERT INTO {control}.dead_letters AS d
        (projection, generation, position, stream, event_id, event_type, category, message, table_name, column_name,
         parked, attempts, failed_at)
    SELECT projection, generation, failure_position, coalesce(failure_stream, ''), coalesce(failure_event_id, ''),
           coalesce(failure_event_type, ''), failure_category, coalesce(failure_message, ''), failure_table,
           failure_column, false, greatest(attempts, 1), failure_at
    FROM standing
    ON CONFLICT (projection, generation, position) DO UPDATE
    SET stream = EXCLUDED.stream, event_id = EXCLUDED.event_id, event_type = EXCLUDED.event_type,
        category = EXCLUDED.category, message = EXCLUDED.message, table_name = EXCLUDED.table_name,
        column_name = EXCLUDED.column_name, parked = false, attempts = EXCLUDED.attempts,
        created_at = clock_timestamp(), failed_at = EXCLUDED.failed_at, retry_at = NULL, retry_following = false,
        retry_attempts = 0, retry_begun = 0, resolved_at = NULL, resolution = NULL
)
UPDATE {control}.checkpoints c
SET position = $2, last_event_position = $2, last_event_id = s.failure_event_id,
    failure_category = NULL, failure_position = NULL, failure_event_type = NULL, failure_event_id = NULL,
    failure_message = NULL, failure_at = NULL, failure_stream = NULL, failure_table = NULL, failure_column = NULL,
    attempts = 0, attempts_position = NULL, starts_without_commit = 0,
    state = CASE WHEN c.paused_at IS NULL THEN 'starting' ELSE 'paused' END, state_since = clock_timestamp(),
    revision = c.revision + 1, updated_at = clock_timestamp()
FROM standing s
WHERE c.projection = s.projection AND c.generation = s.generation
