-- Advisory locks of this database with their sessions. Without the right to see a session, PostgreSQL gives its pid and
-- application_name and hides the rest; `hidden` tells that from values that are absent.
SELECT l.classid::bigint AS classid, l.objid::bigint AS objid, l.objsubid, l.mode, l.granted, l.pid,
       nullif(a.application_name, '') AS application_name,
       a.usename::text AS usename,
       coalesce(nullif(a.client_hostname, ''), host(a.client_addr)) AS client,
       a.state,
       extract(epoch FROM clock_timestamp() - a.state_change)::float8 AS state_seconds,
       extract(epoch FROM clock_timestamp() - a.backend_start)::float8 AS session_seconds,
       extract(epoch FROM clock_timestamp() - l.waitstart)::float8 AS waiting_seconds,
       CASE WHEN a.query <> '<insufficient privilege>' THEN left(regexp_replace(a.query, '\s+', ' ', 'g'), 200) END AS query,
       CASE WHEN l.granted THEN '{}' ELSE pg_blocking_pids(l.pid) END AS blocked_by,
       coalesce(a.query = '<insufficient privilege>', false) AS hidden
FROM pg_locks l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory'
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY l.classid::bigint, l.objid::bigint, l.objsubid, l.granted DESC, l.waitstart, l.pid
