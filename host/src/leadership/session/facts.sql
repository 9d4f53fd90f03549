-- What a new lock session is: whether locks count here, and what must not change while it lives.
SELECT pg_backend_pid(),
       pg_is_in_recovery(),
       current_setting('transaction_read_only')::boolean,
       pg_postmaster_start_time()::text,
       current_database()::text
