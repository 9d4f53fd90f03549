-- Empties the tables of all projections and puts their checkpoints at {position}.
DO $$
DECLARE
    tables text;
BEGIN
    SELECT string_agg(c.oid::regclass::text, ', ') INTO tables
    FROM projector.generations g
    JOIN pg_namespace n ON n.nspname = g.schema_name
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind = 'r';
    EXECUTE 'TRUNCATE ' || tables;
    UPDATE projector.checkpoints SET position = {position};
END $$;
