-- The sessions that $1 waits for.
SELECT a.pid, coalesce(a.application_name, '')
FROM pg_stat_activity a
WHERE a.pid = ANY (pg_blocking_pids($1))
