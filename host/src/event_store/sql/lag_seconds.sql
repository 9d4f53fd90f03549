-- Age of the first event after each checkpoint, by the store's clock; 0 at the end. NULL when that event tells no age:
-- its time is infinite, or still to come.
SELECT CASE
         WHEN next.position IS NULL THEN 0
         WHEN isfinite(next.recorded_at) AND next.recorded_at <= clock_timestamp()
         THEN extract(epoch FROM clock_timestamp() - next.recorded_at)::double precision
       END
FROM unnest($1::bigint[]) WITH ORDINALITY AS asked (position, ord)
LEFT JOIN LATERAL (
    SELECT e.position, e.recorded_at FROM {table} e WHERE e.position > asked.position ORDER BY e.position LIMIT 1
) next ON true
ORDER BY asked.ord
