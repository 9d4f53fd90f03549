-- Why another plugin runs than the one in the leader's folder; a leader whose term is over says nothing.
UPDATE {control}.generations g SET note = $5
FROM {control}.checkpoints c
WHERE g.projection = $1 AND g.generation = $2 AND c.projection = g.projection AND c.generation = g.generation
  AND c.term = $3 AND c.term_id = $4 AND g.note IS DISTINCT FROM $5
