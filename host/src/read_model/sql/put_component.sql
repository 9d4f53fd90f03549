-- Keeps a plugin's file, over damaged bytes too. The row of one that is there already is locked, so that nobody takes
-- it for unused meanwhile.
INSERT INTO {control}.components AS c (sha256, bytes) VALUES ($1, $2)
ON CONFLICT (sha256) DO UPDATE SET bytes = EXCLUDED.bytes, stored_at = clock_timestamp()
