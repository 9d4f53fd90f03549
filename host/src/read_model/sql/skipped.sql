-- Whether the event at a position was passed over already.
SELECT EXISTS (
    SELECT FROM {control}.dead_letters d
    JOIN {control}.generations g USING (projection, generation)
    JOIN {control}.checkpoints c USING (projection, generation)
    WHERE g.live AND d.projection = $1 AND d.position = $2 AND c.position >= $2)
