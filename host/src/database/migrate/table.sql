-- Which migrations were applied to the schema.
CREATE TABLE IF NOT EXISTS {schema}.projector_migrations (
    part       text NOT NULL,
    version    integer NOT NULL,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (part, version)
);
COMMENT ON TABLE {schema}.projector_migrations IS 'Migrations of projector-host that were applied here. Changed by "projector-host migrate up" only.';
COMMENT ON COLUMN {schema}.projector_migrations.checksum IS 'SHA-256 of the migration before the name of the schema was put in.';
