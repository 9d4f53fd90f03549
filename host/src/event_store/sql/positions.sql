-- Positions after the mark, for a reader that is far behind the head.
SELECT position FROM {table} WHERE position > $1 ORDER BY position LIMIT $2
