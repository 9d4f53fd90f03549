-- Files that fill no generation any more, but for those that somebody may be about to use.
DELETE FROM {control}.components c
WHERE c.stored_at < clock_timestamp() - make_interval(secs => $1)
  AND NOT EXISTS (SELECT FROM {control}.generations g WHERE g.sha256 = c.sha256)
