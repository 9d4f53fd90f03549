-- From these events on, their streams wait.
INSERT INTO {control}.parked_streams (projection, generation, stream, position)
SELECT $1, $2, u.* FROM unnest($3::text[], $4::bigint[]) AS u
ON CONFLICT (projection, generation, stream) DO NOTHING
