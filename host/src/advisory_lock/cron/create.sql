-- Remembers which job was begun for which point in time.
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.runs (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job          text NOT NULL,
    scheduled_at timestamptz NOT NULL,
    by           text NOT NULL,
    started_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at  timestamptz,
    exit_code    integer,
    UNIQUE (job, scheduled_at)
);
COMMENT ON TABLE {schema}.runs IS 'Runs of `projector-host locks run --once-per` and `--scheduled-at`; kept for 90 days, the newest older one of a job for ever.';
