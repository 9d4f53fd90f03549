-- What a new session tells of its server, and the one time-out that older servers do not know.
SELECT pg_catalog.current_setting('server_encoding'),
       pg_catalog.current_setting('transaction_read_only'),
       pg_catalog.pg_is_in_recovery()::pg_catalog.text,
       CASE WHEN pg_catalog.current_setting('transaction_timeout', true) IS NOT NULL
            THEN pg_catalog.set_config('transaction_timeout', '0', false) END
