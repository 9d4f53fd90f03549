-- The highest timeline on which the event store of this cluster was read.
SELECT max(timeline) FROM {control}.sources WHERE system_identifier = $1
