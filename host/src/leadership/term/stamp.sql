-- Writes the new term ($1, $2) into the checkpoints of its scope ($3: one projection, or all). Waits for batches that
-- are under way, and from then on no batch of an older term matches. Rows in one order, so two claims cannot deadlock.
WITH rows AS (
    SELECT projection, generation FROM {control}.checkpoints
    WHERE $3::text IS NULL OR projection = $3
    ORDER BY projection, generation
    FOR UPDATE)
UPDATE {control}.checkpoints c SET term = $1, term_id = $2
FROM rows WHERE c.projection = rows.projection AND c.generation = rows.generation
