-- How far the stores are settled, and what is waited for.
SELECT source, settled_upto, head, held_position, (extract(epoch FROM held_since) * 1000000)::bigint, held_by::text
FROM {control}.sources ORDER BY source
