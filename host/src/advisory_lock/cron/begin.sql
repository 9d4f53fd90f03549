-- Begins the run of job $1 for the time $2 (microseconds), or for now when none began within the last $3 seconds.
-- Runs under the lock of the job, so nobody else is between looking and writing. Returns the new id, or who was first,
-- and whether that is not known any more.
--
-- A row is kept for as long as it decides something: 90 days after it began and after its point in time, whichever is
-- later. The newest of the older ones stays for ever: it decides about any longer period, and tells that there were others.
WITH old AS (
    SELECT max(started_at) AS newest FROM {schema}.runs
    WHERE job = $1 AND greatest(started_at, scheduled_at) < clock_timestamp() - interval '90 days'
), swept AS (
    DELETE FROM {schema}.runs r USING old
    WHERE r.job = $1 AND greatest(r.started_at, r.scheduled_at) < clock_timestamp() - interval '90 days'
      AND r.started_at < old.newest
), due AS (
    SELECT coalesce(to_timestamp($2::bigint / 1000000.0), clock_timestamp()) AS at
), earlier AS (
    SELECT by, started_at FROM {schema}.runs, due
    WHERE job = $1
      AND CASE WHEN $3::float8 IS NULL THEN scheduled_at = due.at
               ELSE started_at > clock_timestamp() - make_interval(secs => $3::float8) END
    ORDER BY started_at DESC
    LIMIT 1
), forgotten AS (
    SELECT FROM due, old
    WHERE $3::float8 IS NULL AND old.newest IS NOT NULL AND due.at < clock_timestamp() - interval '90 days'
      AND NOT EXISTS (SELECT FROM earlier)
), begun AS (
    INSERT INTO {schema}.runs (job, scheduled_at, by)
    SELECT $1, due.at, $4 FROM due WHERE NOT EXISTS (SELECT FROM earlier) AND NOT EXISTS (SELECT FROM forgotten)
    ON CONFLICT DO NOTHING
    RETURNING id
)
SELECT (SELECT id FROM begun), (SELECT by FROM earlier), (SELECT started_at::text FROM earlier),
       EXISTS (SELECT FROM forgotten)
