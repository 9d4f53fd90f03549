-- The host's own tables beside the read model: who leads, how far each projection is, what failed.
-- {control} is the checked and quoted name of [read_model] control_schema.

CREATE TABLE {control}.leadership (
    "group"      text PRIMARY KEY,
    term         bigint NOT NULL CHECK (term > 0),
    term_id      uuid NOT NULL,
    node         text NOT NULL,
    host         text NOT NULL,
    backend_pid  integer NOT NULL,
    lock_key     text NOT NULL,
    lock_database text NOT NULL,
    since        timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    released_at  timestamptz
);
COMMENT ON TABLE {control}.leadership IS 'One row a group: the newest term. A leader writes only while its term and term_id stand here.';
COMMENT ON COLUMN {control}.leadership.term_id IS 'Random for each term: after a failover that lost a claim, the number alone could be issued twice.';
COMMENT ON COLUMN {control}.leadership.backend_pid IS 'Session that holds the lock, in the database of [leader] database.';
COMMENT ON COLUMN {control}.leadership.lock_database IS 'System identifier and name of the lock database: advisory locks are per database.';
COMMENT ON COLUMN {control}.leadership.seen_at IS 'Last sign of life of the leader, about every 15 s.';

CREATE TABLE {control}.generations (
    projection      text NOT NULL,
    generation      integer NOT NULL CHECK (generation > 0),
    schema_name     text NOT NULL UNIQUE,
    live            boolean NOT NULL DEFAULT false,
    sha256          text NOT NULL,
    plugin_version  text NOT NULL,
    description     jsonb NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    promoted_at     timestamptz,
    abandoned_at    timestamptz,
    PRIMARY KEY (projection, generation)
);
CREATE UNIQUE INDEX generations_one_live ON {control}.generations (projection) WHERE live;
COMMENT ON TABLE {control}.generations IS 'Builds of a projection: the schema that holds its tables and the plugin that fills them.';
COMMENT ON COLUMN {control}.generations.sha256 IS 'Digest of the plugin file, lower-case hexadecimal.';
COMMENT ON COLUMN {control}.generations.description IS 'What the plugin said of itself: tables, keys, wanted events.';

CREATE TABLE {control}.checkpoints (
    projection            text NOT NULL,
    generation            integer NOT NULL,
    position              bigint NOT NULL DEFAULT 0 CHECK (position >= 0),
    last_event_position   bigint,
    last_event_id         text,
    term                  bigint NOT NULL DEFAULT 0,
    term_id               uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    revision              bigint NOT NULL DEFAULT 0,
    state                 text NOT NULL DEFAULT 'starting' CHECK (state IN
        ('starting', 'catching-up', 'live', 'held', 'retrying', 'stopped', 'paused', 'rebuilding', 'no-plugin')),
    state_since           timestamptz NOT NULL DEFAULT clock_timestamp(),
    paused_at             timestamptz,
    paused_reason         text,
    failure_category      text,
    failure_position      bigint,
    failure_event_type    text,
    failure_event_id      text,
    failure_message       text,
    failure_at            timestamptz,
    starts_without_commit integer NOT NULL DEFAULT 0,
    attempts_position     bigint,
    attempts              integer NOT NULL DEFAULT 0,
    accepted              text CHECK (accepted IN ('plugin', 'store')),
    updated_at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (projection, generation),
    FOREIGN KEY (projection, generation) REFERENCES {control}.generations
);
COMMENT ON TABLE {control}.checkpoints IS 'How far each generation of a projection is. A batch changes its row first, in the transaction of its rows.';
COMMENT ON COLUMN {control}.checkpoints.position IS 'Everything up to here is settled, was scanned and is in the tables.';
COMMENT ON COLUMN {control}.checkpoints.last_event_id IS 'The event that stood at last_event_position when it was applied; tells a restored store from the one that was read.';
COMMENT ON COLUMN {control}.checkpoints.revision IS 'Raised by every command (pause, resume, rewind and so on), so that a running batch notices.';
COMMENT ON COLUMN {control}.checkpoints.accepted IS 'What `resume` allows the leader to take as it finds it: another plugin file, or a store that is not the one that was read.';
COMMENT ON COLUMN {control}.checkpoints.starts_without_commit IS 'Starts since the last commit: finds an event that ends the whole process.';

CREATE TABLE {control}.sources (
    source            text PRIMARY KEY,
    system_identifier text NOT NULL,
    timeline          text NOT NULL,
    settled_upto      bigint NOT NULL DEFAULT 0,
    head              bigint NOT NULL DEFAULT 0,
    held_position     bigint,
    held_since        timestamptz,
    held_by           jsonb,
    updated_at        timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE {control}.sources IS 'Per event store: up to which position no event can appear any more, and which gap is waited for.';

CREATE TABLE {control}.components (
    sha256     text PRIMARY KEY,
    bytes      bytea NOT NULL,
    stored_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE {control}.components IS 'Plugin files by digest, so that any replica can run any recorded generation.';

CREATE TABLE {control}.dead_letters (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    projection  text NOT NULL,
    generation  integer NOT NULL,
    position    bigint NOT NULL,
    stream      text NOT NULL,
    event_id    text NOT NULL,
    event_type  text NOT NULL,
    category    text NOT NULL,
    message     text NOT NULL,
    parked      boolean NOT NULL,
    attempts    integer NOT NULL DEFAULT 0,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    retry_at    timestamptz,
    resolved_at timestamptz,
    resolution  text,
    UNIQUE (projection, generation, position)
);
COMMENT ON TABLE {control}.dead_letters IS 'Events that a projection could not apply, and those that wait behind them in the same stream.';

CREATE TABLE {control}.parked_streams (
    projection  text NOT NULL,
    generation  integer NOT NULL,
    stream      text NOT NULL,
    position    bigint NOT NULL,
    parked_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (projection, generation, stream)
);
COMMENT ON TABLE {control}.parked_streams IS 'Streams whose events go to the dead letters until their first one is resolved.';

CREATE TABLE {control}.audit (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor       text NOT NULL,
    action      text NOT NULL,
    projection  text,
    generation  integer,
    detail      jsonb NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE {control}.audit IS 'Who changed what: every command that changes how a projection runs.';
