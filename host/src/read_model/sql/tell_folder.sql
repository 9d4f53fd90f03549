-- What a replica has in its plugin folder. Words that are too old go, and sooner those of the same folder: whoever
-- runs there tells again in time.
WITH old AS (
    DELETE FROM {control}.folders
    WHERE seen_at < clock_timestamp() - make_interval(secs => CASE WHEN (host, dir) = ($1, $2) THEN $7 ELSE $6 END)
      AND (host, dir, node) IS DISTINCT FROM ($1, $2, $3)
)
INSERT INTO {control}.folders (host, dir, node, projections, refused) VALUES ($1, $2, $3, $4::jsonb, $5::jsonb)
ON CONFLICT (host, dir, node) DO UPDATE
SET projections = EXCLUDED.projections, refused = EXCLUDED.refused, seen_at = clock_timestamp()
