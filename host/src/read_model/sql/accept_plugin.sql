-- The generation goes on with another plugin, as somebody allowed.
WITH accepted AS (
    UPDATE {control}.checkpoints SET accepted = NULL, updated_at = clock_timestamp()
    WHERE projection = $1 AND generation = $2 AND term = $3 AND term_id = $4 AND accepted = 'plugin'
    RETURNING 1
)
UPDATE {control}.generations SET sha256 = $5, plugin_version = $6, description = $7::jsonb
WHERE projection = $1 AND generation = $2 AND EXISTS (SELECT FROM accepted)
