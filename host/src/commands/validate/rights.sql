-- What this role may not do with the control tables, in words.
SELECT string_agg(wanted.privilege, ', ' ORDER BY wanted.privilege) || ' on ' || c.oid::regclass::text
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS wanted (privilege)
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')
  AND (c.relname <> 'projector_migrations' OR wanted.privilege = 'SELECT')
  AND NOT pg_catalog.has_table_privilege(c.oid, wanted.privilege)
GROUP BY c.oid
ORDER BY c.oid::regclass::text
