-- The checkpoint of a new generation, under the term that creates it.
INSERT INTO {control}.checkpoints
    (projection, generation, position, term, term_id, last_event_position, last_event_id)
VALUES ($1, $2, $3, $4, $5, $6, $7)
