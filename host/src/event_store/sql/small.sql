-- What was found as it is stored, but without payloads that may be long texts: those that are larger than this, or
-- that were compressed. The first row without payload ends what the reader takes.
SELECT position, id, stream, version, type, schema_version, recorded_at,
       CASE WHEN small THEN data END, CASE WHEN small THEN metadata END
FROM (
    SELECT *, own <= 2000 AND pg_column_compression(data) IS NULL AND pg_column_compression(metadata) IS NULL AS small
    FROM ({found}) AS found
) AS weighed
ORDER BY position
