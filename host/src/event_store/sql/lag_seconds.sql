-- Age of the first event after each checkpoint, by the store's clock.
SELECT greatest(coalesce(extract(epoch FROM clock_timestamp() - next.recorded_at)::double precision, 0), 0)
FROM unnest($1::bigint[]) WITH ORDINALITY AS asked (position, ord)
LEFT JOIN LATERAL (
    SELECT recorded_at FROM {table} e WHERE e.position > asked.position ORDER BY e.position LIMIT 1
) next ON true
ORDER BY asked.ord
