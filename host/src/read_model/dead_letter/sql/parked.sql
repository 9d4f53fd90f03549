-- The streams that wait.
SELECT stream FROM {control}.parked_streams WHERE projection = $1 AND generation = $2 LIMIT $3
