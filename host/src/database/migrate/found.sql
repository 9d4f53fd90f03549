-- Whether a schema and its table of migrations exist; needs no right on either.
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1) AS has_schema,
       EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = $1 AND c.relname = 'projector_migrations') AS has_table
