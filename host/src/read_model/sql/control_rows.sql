-- What commands changed since, and where the checkpoints stand: read by the leader once in a while, for all projections.
SELECT projection, generation, revision, state, position FROM {control}.checkpoints
