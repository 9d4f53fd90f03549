-- What every replica has in its plugin folder, as far as it was heard of.
SELECT host, dir, node, projections::text, refused::text FROM {control}.folders
WHERE seen_at >= clock_timestamp() - make_interval(secs => $1)
ORDER BY node, host, dir
