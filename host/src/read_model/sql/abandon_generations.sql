-- The generations of a projection, and the plugin files that no other one names.
WITH gone AS (
    DELETE FROM {control}.generations WHERE projection = $1 RETURNING sha256
)
DELETE FROM {control}.components c
USING gone
WHERE c.sha256 = gone.sha256
  AND NOT EXISTS (
      SELECT FROM {control}.generations g WHERE g.sha256 = c.sha256 AND g.projection <> $1
  )
