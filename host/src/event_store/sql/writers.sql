-- Transactions that may still fill a gap, since they hold a writer's lock on the table (or a partition of it).
-- A prepared transaction has no pid.
SELECT l.virtualtransaction, l.pid, coalesce(a.application_name, ''), coalesce(a.usename::text, ''), a.xact_start
FROM pg_locks l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.granted
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (l.relation = $1::oid OR l.relation IN (SELECT relid FROM pg_partition_tree($1::oid)))
  AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
  AND l.pid IS DISTINCT FROM pg_backend_pid()
