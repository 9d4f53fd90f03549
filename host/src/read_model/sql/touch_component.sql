-- The same for one whose bytes are there already.
UPDATE {control}.components SET stored_at = clock_timestamp() WHERE sha256 = $1
