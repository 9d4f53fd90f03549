-- How many statements this database was asked for, those of the measurement itself left out.
SELECT coalesce(sum(s.calls), 0)
FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
WHERE d.datname = current_database() AND s.query !~ 'pg_stat_statements|(live|bench_many)_append|^SET statement_timeout'
