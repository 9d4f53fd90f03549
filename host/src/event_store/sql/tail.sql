-- Everything after the mark, in one snapshot: a filter here would hide positions.
SELECT *, pg_column_size(data) + pg_column_size(metadata) AS own
FROM {table}
WHERE position > $1
ORDER BY position
LIMIT $2
