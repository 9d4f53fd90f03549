-- The slots of a class ($1, as it stands in pg_locks) that are held at the moment.
SELECT objid::int
FROM pg_locks
WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = $1::bigint::oid
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
