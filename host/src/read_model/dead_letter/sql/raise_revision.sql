-- A batch that was made before this must not commit, and the leader looks at the requests.
UPDATE {control}.checkpoints c
SET revision = c.revision + 1, updated_at = clock_timestamp()
WHERE (c.projection, c.generation) IN (
    SELECT d.projection, d.generation FROM {control}.dead_letters d WHERE d.id = ANY ($1))
