-- A dead letter passed.
UPDATE {control}.dead_letters
SET resolved_at = clock_timestamp(), resolution = 'retried', retry_at = NULL, retry_begun = 0,
    retry_attempts = retry_attempts + 1
WHERE id = $1 AND resolved_at IS NULL
RETURNING retry_following
