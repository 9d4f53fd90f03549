-- An attempt at a dead letter did not pass. Without a next time the request ends, and so do those of the letters
-- behind it, which may not overtake it.
WITH failed AS (
    UPDATE {control}.dead_letters d
    SET category = $6, message = $7, table_name = $8, column_name = $9, failed_at = clock_timestamp(),
        retry_attempts = d.retry_attempts + 1, retry_begun = 0,
        retry_at = clock_timestamp() + make_interval(secs => $10),
        retry_following = d.retry_following AND $10 IS NOT NULL
    FROM {control}.checkpoints c
    WHERE c.projection = $1 AND c.generation = $2 AND c.term = $3 AND c.term_id = $4
      AND d.projection = c.projection AND d.generation = c.generation AND d.id = $5 AND d.resolved_at IS NULL
    RETURNING d.id, d.stream
)
UPDATE {control}.dead_letters d
SET retry_at = NULL, retry_following = false
FROM failed
WHERE $10::double precision IS NULL AND d.projection = $1 AND d.generation = $2 AND d.stream = failed.stream
  AND d.id <> failed.id AND d.resolved_at IS NULL
