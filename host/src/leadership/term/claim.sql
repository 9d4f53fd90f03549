-- Claims the next term of $1. Numbers rise over all groups of the control schema, since its checkpoints carry them.
INSERT INTO {control}.leadership AS l ("group", term, term_id, node, host, backend_pid, lock_key, lock_database)
SELECT $1, coalesce(max(term), 0) + 1, $2, $3, $4, $5, $6, $7 FROM {control}.leadership
ON CONFLICT ("group") DO UPDATE
SET term = EXCLUDED.term, term_id = EXCLUDED.term_id, node = EXCLUDED.node, host = EXCLUDED.host,
    backend_pid = EXCLUDED.backend_pid, lock_key = EXCLUDED.lock_key, lock_database = EXCLUDED.lock_database,
    since = clock_timestamp(), seen_at = clock_timestamp(), released_at = NULL
RETURNING term, (extract(epoch FROM since) * 1000000)::bigint
