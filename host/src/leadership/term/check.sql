-- Says that the leader of this term lives; no row means that a newer term was claimed.
UPDATE {control}.leadership SET seen_at = clock_timestamp()
WHERE "group" = $1 AND term = $2 AND term_id = $3
