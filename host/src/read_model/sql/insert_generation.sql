-- A first generation, live from the start: it is what readers see while it fills.
INSERT INTO {control}.generations
    (projection, generation, schema_name, live, sha256, plugin_version, description, start_position, promoted_at)
VALUES ($1, $2, $3, true, $4, $5, $6::jsonb, $7, clock_timestamp())
