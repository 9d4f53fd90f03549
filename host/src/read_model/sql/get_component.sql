-- A plugin's file as it was kept.
SELECT bytes FROM {control}.components WHERE sha256 = $1
