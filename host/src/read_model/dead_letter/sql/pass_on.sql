-- A request for all that follow goes to the next open letter of the stream.
UPDATE {control}.dead_letters
SET retry_at = clock_timestamp(), retry_following = true, retry_attempts = 0, retry_begun = 0
WHERE id = (
    SELECT d.id FROM {control}.dead_letters d
    WHERE d.projection = $1 AND d.generation = $2 AND d.stream = $3 AND d.resolved_at IS NULL
    ORDER BY d.position
    LIMIT 1)
