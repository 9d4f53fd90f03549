-- The same for one whose bytes are there already. Damaged ones count as not there.
UPDATE {control}.components SET stored_at = clock_timestamp()
WHERE sha256 = $1 AND encode(sha256(bytes), 'hex') = sha256
