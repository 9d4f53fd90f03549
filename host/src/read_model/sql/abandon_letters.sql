-- All dead letters of a projection, and the streams that wait behind some of them.
WITH streams AS (DELETE FROM {control}.parked_streams WHERE projection = $1)
DELETE FROM {control}.dead_letters WHERE projection = $1
