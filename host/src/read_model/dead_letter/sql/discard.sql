-- These are given up. $2 is of no meaning here.
UPDATE {control}.dead_letters
SET resolved_at = clock_timestamp(), resolution = 'discarded', retry_at = NULL, retry_following = false
WHERE id = ANY ($1) AND resolved_at IS NULL AND $2 IS NOT NULL
RETURNING id
