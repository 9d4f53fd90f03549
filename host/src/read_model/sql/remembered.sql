-- How far this very store is known to be settled, and the last event up to there, which must still stand in it.
-- Nothing for a store that is new, or another one, or that has been promoted since. A checkpoint is no proof: a
-- projection may begin at any position.
SELECT s.settled_upto, s.event_position, s.event_id
FROM {control}.sources s
WHERE s.source = $1 AND s.system_identifier = $2 AND s.timeline = $3
