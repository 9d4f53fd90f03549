-- A replica that ended in order speaks for its folder no more; others that share it still do.
DELETE FROM {control}.folders WHERE host = $1 AND dir = $2 AND node = $3
