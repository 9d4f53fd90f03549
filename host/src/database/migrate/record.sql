-- Notes that a migration was applied.
INSERT INTO {schema}.projector_migrations (part, version, name, checksum) VALUES ($1, $2, $3, $4);
