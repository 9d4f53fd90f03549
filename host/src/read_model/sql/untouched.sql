-- Behind advance.sql in a statement all of whose parts share one view of the database: nobody has changed the row since
-- that view was taken, so nobody has changed rows that it does not show.
AND updated_at IS NOT DISTINCT FROM (
    SELECT seen.updated_at FROM {control}.checkpoints seen WHERE seen.projection = $4 AND seen.generation = $5
)
