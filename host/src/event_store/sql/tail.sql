-- What came after the mark, in one snapshot, nothing left out: a filter here would hide positions.
SELECT position, id, stream, version, type, schema_version, recorded_at, data::text, metadata::text
FROM {table}
WHERE position > $1
ORDER BY position
LIMIT $2
