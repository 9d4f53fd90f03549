-- The generation that readers see.
SELECT generation, schema_name, sha256, plugin_version, description::text
FROM {control}.generations
WHERE projection = $1 AND live
