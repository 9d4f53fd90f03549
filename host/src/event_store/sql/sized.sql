-- Cuts what was found to $3 bytes of payload before a payload leaves the server. The first row always fits; the
-- first that does not comes without payload, as the last one, so that the reader knows where the cut is.
-- Stored sizes, which cost nothing, bound how many payloads are turned into text; texts are counted exactly.
WITH weighed AS (
    SELECT found.*, row_number() OVER rising AS n, sum(own) OVER rising AS stored
    FROM ({found}) AS found
    WINDOW rising AS (ORDER BY position ROWS UNBOUNDED PRECEDING)
), shown AS (
    SELECT position, id, stream, version, type, schema_version, recorded_at,
           data::text AS data, metadata::text AS metadata, n, stored
    FROM weighed
    WHERE n <= 2 OR stored - own <= $3
    OFFSET 0
), counted AS (
    SELECT *, sum(octet_length(data) + octet_length(metadata)) OVER rising AS total
    FROM shown
    WINDOW rising AS (ORDER BY position ROWS UNBOUNDED PRECEDING)
)
SELECT position, id, stream, version, type, schema_version, recorded_at,
       CASE WHEN n = 1 OR (stored <= $3 AND total <= $3) THEN data END,
       CASE WHEN n = 1 OR (stored <= $3 AND total <= $3) THEN metadata END
FROM counted
WHERE n <= 2 OR total - octet_length(data) - octet_length(metadata) <= $3
ORDER BY position
