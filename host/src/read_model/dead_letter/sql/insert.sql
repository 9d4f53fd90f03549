-- Events that cannot be applied, or wait behind one that cannot, in the transaction of their checkpoint. A row of
-- the same event is from before a rewind, or was resolved: what is known now counts.
INSERT INTO {control}.dead_letters AS d
    (projection, generation, position, stream, event_id, event_type, category, message, table_name, column_name,
     parked, attempts)
SELECT $1, $2, u.*
FROM unnest($3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
            $11::boolean[], $12::integer[]) AS u
ON CONFLICT (projection, generation, position) DO UPDATE
SET stream = EXCLUDED.stream, event_id = EXCLUDED.event_id, event_type = EXCLUDED.event_type,
    category = EXCLUDED.category, message = EXCLUDED.message, table_name = EXCLUDED.table_name,
    column_name = EXCLUDED.column_name, parked = EXCLUDED.parked, attempts = EXCLUDED.attempts,
    created_at = clock_timestamp(), failed_at = clock_timestamp(), retry_at = NULL, retry_following = false,
    retry_attempts = 0, retry_begun = 0, resolved_at = NULL, resolution = NULL
