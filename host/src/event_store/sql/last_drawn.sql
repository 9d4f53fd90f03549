-- The last number that a sequence has handed out, if we may see it.
SELECT CASE WHEN has_sequence_privilege($1, 'USAGE, SELECT') THEN coalesce(pg_sequence_last_value($1), 0) END
