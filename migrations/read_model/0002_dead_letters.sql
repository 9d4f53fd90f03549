-- Dead letters: where a write failed, what was asked of them, and the whole event at which a projection stands.

ALTER TABLE {control}.dead_letters
    ADD COLUMN table_name      text,
    ADD COLUMN column_name     text,
    ADD COLUMN retry_following boolean NOT NULL DEFAULT false,
    ADD COLUMN retry_attempts  integer NOT NULL DEFAULT 0,
    ADD COLUMN retry_begun     integer NOT NULL DEFAULT 0,
    ADD COLUMN failed_at       timestamptz NOT NULL DEFAULT clock_timestamp();
COMMENT ON COLUMN {control}.dead_letters.position IS 'Where the event stands in the event store, which keeps its payload.';
COMMENT ON COLUMN {control}.dead_letters.parked IS 'Whether later events of the stream wait behind it. False: it was skipped.';
COMMENT ON COLUMN {control}.dead_letters.attempts IS 'Attempts before it became a dead letter; 0 for an event that only waits.';
COMMENT ON COLUMN {control}.dead_letters.retry_at IS 'Not before then the leader tries it again; null when nobody asked.';
COMMENT ON COLUMN {control}.dead_letters.retry_following IS 'Whether the request goes on to the next one of the stream.';
COMMENT ON COLUMN {control}.dead_letters.retry_attempts IS 'Attempts of the present request; each request has the whole budget.';
COMMENT ON COLUMN {control}.dead_letters.retry_begun IS 'Attempts that were begun and not ended: finds an event that ends the whole process.';
COMMENT ON COLUMN {control}.dead_letters.failed_at IS 'When it last did not pass.';
COMMENT ON COLUMN {control}.dead_letters.resolution IS 'retried or discarded.';

CREATE INDEX dead_letters_open ON {control}.dead_letters (projection, generation, stream, position)
    WHERE resolved_at IS NULL;
CREATE INDEX dead_letters_due ON {control}.dead_letters (projection, generation, retry_at)
    WHERE retry_at IS NOT NULL;

ALTER TABLE {control}.checkpoints
    ADD COLUMN failure_stream text,
    ADD COLUMN failure_table  text,
    ADD COLUMN failure_column text;
