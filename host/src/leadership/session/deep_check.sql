-- Whether this very session holds the lock ($1 classid, $2 objid, $3 objsubid).
SELECT EXISTS (
    SELECT FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock' AND pid = pg_backend_pid()
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND classid = $1::bigint::oid AND objid = $2::bigint::oid AND objsubid = $3)
