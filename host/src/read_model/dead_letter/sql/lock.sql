-- The checkpoints of these dead letters, in one order for everybody.
SELECT c.revision
FROM {control}.checkpoints c
WHERE (c.projection, c.generation) IN (
    SELECT d.projection, d.generation FROM {control}.dead_letters d WHERE d.id = ANY ($1))
ORDER BY c.projection, c.generation
FOR UPDATE
