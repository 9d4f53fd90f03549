-- Wanted events of a settled stretch. The running size is known before a payload leaves the server: small
-- values count by their stored size, large ones, which may be compressed, by the size of their text.
SELECT position, id, stream, version, type, schema_version, recorded_at, data::text, metadata::text, found
FROM (
    SELECT e.*, count(*) OVER () AS found,
           sum(CASE WHEN pg_column_size(data) < 2000 THEN pg_column_size(data) ELSE octet_length(data::text) END)
               OVER (ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM (
        SELECT * FROM {table}
        WHERE position > $1 AND position <= $2
          AND ($3::text[] IS NULL OR type = ANY ($3))
          AND ($4::text[] IS NULL OR stream LIKE ANY ($4))
        ORDER BY position
        LIMIT $5
    ) e
) sized
WHERE before IS NULL OR before < $6
ORDER BY position
