-- The session that holds an advisory lock ($1 classid, $2 objid, $3 objsubid), and what it calls itself.
SELECT l.pid, coalesce(a.application_name, '')
FROM pg_locks l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.mode = 'ExclusiveLock'
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.classid = $1::bigint::oid AND l.objid = $2::bigint::oid AND l.objsubid = $3
LIMIT 1
