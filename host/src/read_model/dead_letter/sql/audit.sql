-- Who did what to which dead letters.
INSERT INTO {control}.audit (actor, action, projection, generation, detail)
SELECT $2, $3, d.projection, d.generation,
       jsonb_build_object('dead_letters', jsonb_agg(d.id ORDER BY d.id), 'positions', jsonb_agg(d.position ORDER BY d.id),
                          'following', $4::boolean)
FROM {control}.dead_letters d
WHERE d.id = ANY ($1)
GROUP BY d.projection, d.generation
