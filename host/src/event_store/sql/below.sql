-- Wanted events of a settled stretch.
SELECT *, pg_column_size(data) + pg_column_size(metadata) AS own
FROM {table}
WHERE position > $1 AND position <= $4
  AND ($5::text[] IS NULL OR type = ANY ($5))
  AND ($6::text[] IS NULL OR stream LIKE ANY ($6))
ORDER BY position
LIMIT $2
