-- Keeps the term from changing, and other such transactions waiting, until this one ends.
SELECT 1 FROM {control}.leadership WHERE "group" = $1 AND term = $2 AND term_id = $3 FOR UPDATE
