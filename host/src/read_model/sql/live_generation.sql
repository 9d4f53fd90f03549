-- The generation that readers see.
SELECT generation, schema_name, sha256, plugin_version, description::text, start_position, former, note
FROM {control}.generations
WHERE projection = $1 AND live
