-- Terms under another key ($1) or another lock database ($2) that were not given back. A leader gives a sign of life
-- every 15 s, so one that has been silent for a minute is gone.
SELECT lock_key, lock_database, node, host, backend_pid, seen_at > clock_timestamp() - interval '60 seconds'
FROM {control}.leadership
WHERE released_at IS NULL AND (lock_key <> $1 OR lock_database <> $2)
