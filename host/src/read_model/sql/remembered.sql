-- How far this very store is known to be settled; a checkpoint is settled by rule. 0 for a store that is new,
-- or another one, or that has been promoted since.
SELECT coalesce((
    SELECT greatest(s.settled_upto, (SELECT max(position) FROM {control}.checkpoints))
    FROM {control}.sources s
    WHERE s.source = $1 AND s.system_identifier = $2 AND s.timeline = $3
), 0)
