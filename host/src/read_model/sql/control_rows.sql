-- What commands changed since: read by the leader once in a while, for all projections at once.
SELECT projection, generation, revision, paused_at IS NOT NULL, failure_at IS NOT NULL FROM {control}.checkpoints
