-- What another statement finds after the mark, and before it what stands from the last known event up to the mark:
-- that event and nothing else, or the store is not the one that was read. In one snapshot.
(SELECT position, id, '', 0::bigint, '', 0, recorded_at, NULL, NULL
 FROM {table}
 WHERE position >= {known} AND position <= $1
 ORDER BY position
 LIMIT 100)
UNION ALL
({found})
ORDER BY 1
