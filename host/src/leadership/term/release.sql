-- Marks a term as given back, if it is still the newest.
UPDATE {control}.leadership SET released_at = clock_timestamp()
WHERE "group" = $1 AND term = $2 AND term_id = $3
