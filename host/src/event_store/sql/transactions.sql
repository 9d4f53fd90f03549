-- Every open transaction of this database, for stores that draw a number by a statement of its own. Those that
-- are prepared have no pid. ($1, the table, is not needed here.)
SELECT l.virtualtransaction, l.pid, coalesce(a.application_name, ''), coalesce(a.usename::text, ''), a.xact_start
FROM pg_locks l
JOIN pg_stat_activity a ON a.pid = l.pid AND a.datname = current_database()
WHERE l.locktype = 'virtualxid' AND l.granted AND l.pid <> pg_backend_pid() AND $1::oid IS NOT NULL
UNION ALL
SELECT 'prepared/' || p.gid, NULL, 'prepared transaction ' || p.gid, p.owner::text, p.prepared
FROM pg_prepared_xacts p
WHERE p.database = current_database()
