-- Stops a projection after its running batch, until it is resumed.
UPDATE {control}.checkpoints c
SET paused_at = clock_timestamp(), paused_reason = $2, state = 'paused', state_since = clock_timestamp(),
    revision = revision + 1, updated_at = clock_timestamp()
FROM {control}.generations g
WHERE g.projection = c.projection AND g.generation = c.generation AND g.live AND c.projection = $1
  AND c.paused_at IS NULL
