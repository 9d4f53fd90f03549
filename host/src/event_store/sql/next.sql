-- The first position after a stretch that had nothing, in what is settled: one look into the index.
SELECT min(position) FROM {table} WHERE position > $1 AND position <= $2
