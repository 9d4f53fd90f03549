-- What kind of server answers: its version, and whether it is a standby.
SELECT current_setting('server_version_num')::int4 AS version, pg_is_in_recovery() AS in_recovery
