-- The checkpoints of a projection go first, which waits for its running batch; the schemas of its generations.
WITH gone AS (DELETE FROM {control}.checkpoints WHERE projection = $1)
SELECT schema_name FROM {control}.generations WHERE projection = $1
