-- A replica with another folder and a file for this projection, the one that was heard of last.
SELECT node, host FROM {control}.folders
WHERE projections ? $1 AND (host, dir) IS DISTINCT FROM ($2, $3)
  AND seen_at >= clock_timestamp() - make_interval(secs => $4)
ORDER BY seen_at DESC LIMIT 1
