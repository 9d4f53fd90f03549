-- What lies in every plugin folder, as the replica says that told of it last.
SELECT DISTINCT ON (host, dir) host, dir, node, projections::text, refused::text
FROM {control}.folders
WHERE seen_at >= clock_timestamp() - make_interval(secs => $1)
ORDER BY host, dir, seen_at DESC
