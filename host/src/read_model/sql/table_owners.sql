-- Other projections whose live generation has a table of one of these names.
SELECT g.projection, c.relname::text
FROM {control}.generations g
JOIN pg_namespace n ON n.nspname = g.schema_name
JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p')
WHERE g.live AND g.projection <> $1 AND c.relname = ANY ($2)
ORDER BY 1, 2
