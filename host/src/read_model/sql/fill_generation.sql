-- The generation is filled by another plugin from now on; which ones filled it before is remembered, up to 100.
UPDATE {control}.generations
SET former = CASE WHEN sha256 = $3 THEN former
                  ELSE (array_append(array_remove(array_remove(former, $3), sha256), sha256))[
                       greatest(1, cardinality(former) - 98):] END,
    sha256 = $3, plugin_version = $4, description = $5::jsonb, note = NULL
WHERE projection = $1 AND generation = $2
RETURNING former
