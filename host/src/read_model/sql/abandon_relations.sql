-- The host's views on the tables of a generation, then the tables.
SELECT true, v.relname::text
FROM pg_catalog.pg_class v
JOIN pg_catalog.pg_namespace vn ON vn.oid = v.relnamespace
WHERE vn.nspname = $1 AND v.relkind = 'v' AND EXISTS (
    SELECT FROM pg_catalog.pg_rewrite r
    JOIN pg_catalog.pg_depend d
      ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = r.oid
     AND d.refclassid = 'pg_catalog.pg_class'::regclass
    JOIN pg_catalog.pg_class t ON t.oid = d.refobjid AND t.relname = v.relname AND t.relkind IN ('r', 'p')
    JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
    WHERE r.ev_class = v.oid AND tn.nspname = $2
)
UNION ALL
SELECT false, t.relname::text
FROM pg_catalog.pg_class t
JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
WHERE tn.nspname = $2 AND t.relkind IN ('r', 'p')
ORDER BY 1 DESC, 2
