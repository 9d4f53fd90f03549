-- Whether the store can be read safely, and which one it is.
SELECT pg_is_in_recovery(),
       t.oid,
       s.seqcache, s.seqincrement, s.seqcycle, s.seqrelid::regclass::text,
       (SELECT system_identifier::text FROM pg_control_system()),
       CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END,
       current_database()::text,
       format('%s/%s', (SELECT oid FROM pg_database WHERE datname = current_database()), t.oid),
       coalesce(has_sequence_privilege(s.seqrelid, 'SELECT'), false),
       c.relkind::text,
       current_user::text,
       coalesce(row_security_active(t.oid), false),
       coalesce(has_table_privilege(t.oid, 'SELECT'), false),
       EXISTS (SELECT FROM pg_rewrite WHERE ev_class = t.oid),
       coalesce(c.relkind = 'r', false) AND EXISTS (SELECT FROM pg_inherits WHERE inhparent = t.oid)
FROM (SELECT to_regclass($1)::oid AS oid) t
LEFT JOIN pg_class c ON c.oid = t.oid
LEFT JOIN pg_sequence s
    -- Asked of the name, since the planner looks at this before it knows the kind.
    ON s.seqrelid = CASE WHEN to_regclass($1) IS NOT NULL THEN pg_get_serial_sequence($1, 'position')::regclass END
