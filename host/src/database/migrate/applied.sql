-- The applied migrations of one part, in order.
SELECT version, name, checksum,
       to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS applied_at
  FROM {schema}.projector_migrations
 WHERE part = $1
 ORDER BY version
