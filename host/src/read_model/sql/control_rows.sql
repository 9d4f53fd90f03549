-- What commands changed since: read by the leader once in a while, for all projections at once.
SELECT projection, generation, revision, state FROM {control}.checkpoints
