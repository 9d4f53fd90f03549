-- Relations in the readers' schema that bear one of these names and are not this host's views.
SELECT c.relname::text
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = ANY ($2)
  AND NOT (c.relkind = 'v' AND coalesce(obj_description(c.oid, 'pg_class'), '') LIKE 'projection %')
ORDER BY 1
