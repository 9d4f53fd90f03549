-- One event, whole.
SELECT position, id, stream, version, type, schema_version, recorded_at, data::text, metadata::text
FROM {table} WHERE position = $1
