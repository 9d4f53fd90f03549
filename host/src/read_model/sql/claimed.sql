-- Keeps the term from changing until this transaction ends; no row when it has changed already.
SELECT 1 FROM {control}.leadership WHERE "group" = $1 AND term = $2 AND term_id = $3 FOR SHARE
