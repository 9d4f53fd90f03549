-- Open dead letters and waiting streams, for each projection that has some.
SELECT d.projection, d.generation, count(*),
       (SELECT count(*) FROM {control}.parked_streams p
        WHERE p.projection = d.projection AND p.generation = d.generation),
       greatest(0, extract(epoch FROM clock_timestamp() - min(d.created_at)))::bigint
FROM {control}.dead_letters d
WHERE d.resolved_at IS NULL
GROUP BY d.projection, d.generation
