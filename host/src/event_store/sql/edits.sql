-- What a reader that runs must notice: a sequence behind the table, a table that lost partitions, and rows that came
-- to stand at or below what was settled. Rows are only ever added behind the last ones of the file, so whatever is
-- new there with an old position came late. {table} is the events table.
WITH file AS (
    SELECT pg_relation_filenode($1)::bigint AS node,
           pg_relation_size($1) / current_setting('block_size')::bigint AS blocks
), since AS (
    -- The last pages may still have had room. A table without a file of its own has no pages to look at.
    SELECT CASE WHEN node > 0 THEN format('(%s,0)', greatest(blocks - 16, 0))::tid ELSE '(4294967294,0)'::tid END AS page
    FROM file
)
SELECT file.node,
       (SELECT page::text FROM since),
       ARRAY(SELECT position FROM {table} WHERE ctid >= $2::tid AND position <= $3),
       ARRAY(SELECT position FROM {table} WHERE ctid >= (SELECT page FROM since) AND position <= $4),
       coalesce((SELECT max(position) FROM {table}), 0),
       ({last_drawn}),
       ARRAY(SELECT relid::oid FROM pg_partition_tree($1))
FROM file
