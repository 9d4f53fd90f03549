-- The newest unreleased term that the lock session $1 claimed. Pids come again, hence the order.
SELECT "group", term, term_id, node, host, (extract(epoch FROM since) * 1000000)::bigint
FROM {control}.leadership
WHERE backend_pid = $1 AND released_at IS NULL
ORDER BY term DESC
LIMIT 1
