-- What a replica has in its plugin folder; words that are too old go.
WITH old AS (
    DELETE FROM {control}.folders
    WHERE seen_at < clock_timestamp() - make_interval(secs => $6) AND (host, dir) IS DISTINCT FROM ($1, $2)
)
INSERT INTO {control}.folders (host, dir, node, projections, refused) VALUES ($1, $2, $3, $4::jsonb, $5::jsonb)
ON CONFLICT (host, dir) DO UPDATE
SET node = EXCLUDED.node, projections = EXCLUDED.projections, refused = EXCLUDED.refused, seen_at = clock_timestamp()
