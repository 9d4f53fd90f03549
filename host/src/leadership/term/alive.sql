-- Whether the session $1 holds an advisory lock in this database.
SELECT EXISTS (
    SELECT FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND pid = $1
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
