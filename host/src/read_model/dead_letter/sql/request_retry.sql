-- The leader shall try these again, with the whole budget of attempts.
UPDATE {control}.dead_letters
SET retry_at = clock_timestamp(), retry_following = $2, retry_attempts = 0, retry_begun = 0
WHERE id = ANY ($1) AND resolved_at IS NULL AND (retry_at IS NULL OR ($2 AND NOT retry_following))
RETURNING id
