-- Every projection as people see it: the live generation and its checkpoint.
SELECT g.projection, g.generation, g.sha256, g.plugin_version, c.state, c.position, c.failure_category,
       c.failure_position, c.failure_event_type, c.failure_message,
       (extract(epoch FROM c.failure_at) * 1000000)::bigint, c.paused_reason, c.revision,
       g.note
FROM {control}.generations g
JOIN {control}.checkpoints c USING (projection, generation)
WHERE g.live
ORDER BY g.projection
