-- How far this very store is known to be settled. 0 for a store that is new, or another one, or that has been
-- promoted since. A checkpoint is no proof: a projection may begin at any position.
SELECT coalesce((
    SELECT s.settled_upto
    FROM {control}.sources s
    WHERE s.source = $1 AND s.system_identifier = $2 AND s.timeline = $3
), 0)
