-- What a new lock session is: whether locks count here, and what must not change while it lives.
SELECT pg_backend_pid(),
       pg_is_in_recovery(),
       current_setting('transaction_read_only')::boolean,
       pg_postmaster_start_time()::text,
       current_database()::text,
       CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END
