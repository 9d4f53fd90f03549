-- The indexes of a table beside its primary key, with their columns in order.
SELECT i.relname::text,
       (SELECT array_agg(a.attname::text ORDER BY k.place)
        FROM unnest(x.indkey::int2[]) WITH ORDINALITY AS k (number, place)
        JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.number)
FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_class t ON t.oid = x.indrelid
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname = $1 AND t.relname = $2 AND NOT x.indisprimary AND NOT x.indisunique
