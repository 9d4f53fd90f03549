-- Begins a run of job $1 for the time $2 (microseconds), or for now when none began within the last $3 seconds.
-- Runs under the lock of the job, so nobody else is between looking and writing. Returns the new id, or who was first.
WITH swept AS (
    DELETE FROM {schema}.runs WHERE job = $1 AND started_at < clock_timestamp() - interval '90 days'
), due AS (
    SELECT coalesce(to_timestamp($2::bigint / 1000000.0), clock_timestamp()) AS at
), earlier AS (
    SELECT by, started_at FROM {schema}.runs, due
    WHERE job = $1
      AND CASE WHEN $3::float8 IS NULL THEN scheduled_at = due.at
               ELSE started_at > clock_timestamp() - make_interval(secs => $3::float8) END
    ORDER BY started_at DESC
    LIMIT 1
), begun AS (
    INSERT INTO {schema}.runs (job, scheduled_at, by)
    SELECT $1, due.at, $4 FROM due WHERE NOT EXISTS (SELECT FROM earlier)
    ON CONFLICT DO NOTHING
    RETURNING id
)
SELECT (SELECT id FROM begun), (SELECT by FROM earlier), (SELECT started_at::text FROM earlier)
