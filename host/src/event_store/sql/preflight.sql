-- Whether the store can be read safely, and which one it is.
SELECT pg_is_in_recovery(),
       to_regclass($1)::oid,
       s.seqcache, s.seqincrement, s.seqcycle, s.seqrelid::regclass::text,
       (SELECT system_identifier::text FROM pg_control_system()),
       CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END,
       current_database()::text,
       CASE WHEN has_sequence_privilege(s.seqrelid, 'USAGE, SELECT') THEN pg_sequence_last_value(s.seqrelid) END
FROM (SELECT 1) one
LEFT JOIN pg_sequence s
    ON s.seqrelid = CASE WHEN to_regclass($1) IS NOT NULL THEN pg_get_serial_sequence($1, 'position')::regclass END
