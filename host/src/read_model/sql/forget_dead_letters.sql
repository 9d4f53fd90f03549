-- Dead letters of rows that are gone.
WITH streams AS (DELETE FROM {control}.parked_streams WHERE projection = $1 AND generation = $2)
DELETE FROM {control}.dead_letters WHERE projection = $1 AND generation = $2
