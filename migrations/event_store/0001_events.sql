-- The event store: one append-only table, the functions that append to it, and the wake-up of its readers.
-- {event_store} is the checked and quoted name of [event_store] schema. Run with search_path = pg_catalog.
--
-- Advisory locks, all of the two-number form and held to the end of the transaction:
--   (1347570259, hash of schema and stream)  one appender a stream at a time, so that versions have no holes
--   (1347570263, oid of the events table)    one notifying transaction at a time, so that commits do not queue

CREATE TABLE {event_store}.events (
    position       bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
    stream         text NOT NULL CHECK (octet_length(stream) BETWEEN 1 AND 1024),
    version        bigint NOT NULL CHECK (version > 0),
    id             uuid NOT NULL DEFAULT gen_random_uuid(),
    type           text NOT NULL CHECK (octet_length(type) BETWEEN 1 AND 256),
    schema_version integer NOT NULL DEFAULT 1 CHECK (schema_version > 0),
    data           jsonb NOT NULL,
    metadata       jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(metadata) = 'object'),
    recorded_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT events_id_key UNIQUE (id),
    CONSTRAINT events_stream_version_key UNIQUE (stream, version)
);
CREATE INDEX events_type_position_idx ON {event_store}.events (type, position);

COMMENT ON TABLE {event_store}.events IS 'All events, append only. Append with the function "append" of this schema.';
COMMENT ON COLUMN {event_store}.events.position IS 'Order of reading. Drawn by the inserting transaction (sequence cache 1), so a gap is a running or a rolled-back transaction.';
COMMENT ON COLUMN {event_store}.events.stream IS 'What the event happened to, for example order-42; at most 1024 bytes.';
COMMENT ON COLUMN {event_store}.events.version IS 'Place within the stream, from 1 without holes.';
COMMENT ON COLUMN {event_store}.events.id IS 'Chosen by the writer, so that sending an event again does not append it again.';
COMMENT ON COLUMN {event_store}.events.type IS 'What happened, for example OrderCreated; at most 256 bytes.';
COMMENT ON COLUMN {event_store}.events.schema_version IS 'Version of the shape of data, from 1.';
COMMENT ON COLUMN {event_store}.events.data IS 'The event itself.';
COMMENT ON COLUMN {event_store}.events.metadata IS 'What is known about the event: who, why, which request.';
COMMENT ON COLUMN {event_store}.events.recorded_at IS 'The clock of this server at the insert; not an order.';
COMMENT ON INDEX {event_store}.events_type_position_idx IS 'Serves readers that want a few types out of many.';

CREATE FUNCTION {event_store}.refuse_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION '% on %.% is refused: events are append only', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = '55000',
              HINT = 'Append an event that corrects the earlier one. If the law demands a deletion, the owner of the table can disable the trigger events_append_only in one transaction, and read models have to be rebuilt.';
END $$;
COMMENT ON FUNCTION {event_store}.refuse_change() IS 'Keeps the table append only.';

CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {event_store}.events
    FOR EACH STATEMENT EXECUTE FUNCTION {event_store}.refuse_change();

CREATE FUNCTION {event_store}.wake() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- A transaction that notifies holds a cluster-wide lock through its commit. Only one at a time gets
    -- here; the events of the others are found by that wake-up or by the readers' polling.
    IF current_setting('projector.notify', true) IS DISTINCT FROM 'off'
       AND pg_try_advisory_xact_lock(1347570263, TG_RELID::integer) THEN
        PERFORM pg_notify(left('projector_events_' || TG_TABLE_SCHEMA, 63), '');
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION {event_store}.wake() IS
    'Wakes the readers: channel projector_events_<schema>, cut to 63 bytes, empty payload. SET LOCAL projector.notify = ''off'' silences a transaction, as one that will be prepared needs.';

CREATE TRIGGER events_wake AFTER INSERT ON {event_store}.events
    FOR EACH STATEMENT EXECUTE FUNCTION {event_store}.wake();

CREATE FUNCTION {event_store}.event_fault(event jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN jsonb_typeof(event) IS DISTINCT FROM 'object' THEN 'is no JSON object'
    WHEN event - '{stream,type,data,metadata,id,expected_version,schema_version}'::text[] <> '{}'::jsonb
        THEN 'has the unknown key "' || (SELECT min(k) FROM jsonb_object_keys(
            event - '{stream,type,data,metadata,id,expected_version,schema_version}'::text[]) AS k) || '"'
    WHEN jsonb_typeof(event -> 'type') IS DISTINCT FROM 'string' THEN 'has no text in "type"'
    WHEN octet_length(event ->> 'type') NOT BETWEEN 1 AND 256 THEN 'has a "type" that is empty or longer than 256 bytes'
    WHEN NOT event ? 'data' THEN 'has no "data"'
    WHEN jsonb_typeof(coalesce(event -> 'metadata', 'null')) NOT IN ('object', 'null')
        THEN 'has a "metadata" that is no JSON object'
    WHEN jsonb_typeof(coalesce(event -> 'id', 'null')) NOT IN ('string', 'null')
        OR event ->> 'id' !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN 'has an "id" that is no UUID'
    WHEN jsonb_typeof(coalesce(event -> 'schema_version', 'null')) NOT IN ('number', 'null')
        THEN 'has a "schema_version" that is no number'
    WHEN (event ->> 'schema_version')::numeric NOT BETWEEN 1 AND 2147483647
        OR (event ->> 'schema_version')::numeric % 1 <> 0 THEN 'has a "schema_version" that is no whole number from 1 to 2147483647'
    WHEN jsonb_typeof(coalesce(event -> 'stream', 'null')) NOT IN ('string', 'null') THEN 'has no text in "stream"'
    WHEN octet_length(event ->> 'stream') NOT BETWEEN 1 AND 1024 THEN 'has a "stream" that is empty or longer than 1024 bytes'
    WHEN jsonb_typeof(coalesce(event -> 'expected_version', 'null')) NOT IN ('number', 'null')
        THEN 'has an "expected_version" that is no number'
    WHEN (event ->> 'expected_version')::numeric NOT BETWEEN 0 AND 9223372036854775807
        OR (event ->> 'expected_version')::numeric % 1 <> 0 THEN 'has an "expected_version" that is no whole number from 0'
END;
COMMENT ON FUNCTION {event_store}.event_fault(jsonb) IS 'What is wrong with an event that is to be appended; null when nothing is.';

CREATE FUNCTION {event_store}.lock_streams(streams text[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- In the order of the keys, so that two appenders of several streams never wait for each other.
    PERFORM pg_advisory_xact_lock(1347570259, key)
       FROM (SELECT DISTINCT hashtext('{event_store}.' || name) AS key FROM unnest(streams) AS name ORDER BY 1) AS keys;
END $$;
COMMENT ON FUNCTION {event_store}.lock_streams(text[]) IS 'Waits until no other transaction appends to these streams, and keeps others out until this one ends.';

CREATE FUNCTION {event_store}.append(stream text, expected_version bigint, events jsonb)
RETURNS TABLE (first_position bigint, last_position bigint, version bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    given  integer;
    known  integer;
    landed integer;
    base   bigint;
    fault  record;
BEGIN
    IF append.stream IS NULL OR octet_length(append.stream) NOT BETWEEN 1 AND 1024 THEN
        RAISE EXCEPTION 'the stream is null, empty or longer than 1024 bytes' USING ERRCODE = '22023';
    ELSIF append.expected_version < 0 THEN
        RAISE EXCEPTION 'expected_version is %; it is null for any version, 0 for a new stream, or a version', append.expected_version
            USING ERRCODE = '22023';
    ELSIF jsonb_typeof(append.events) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'events is no JSON array' USING ERRCODE = '22023';
    END IF;
    given := jsonb_array_length(append.events);
    IF given = 0 THEN
        RAISE EXCEPTION 'events is an empty array: there is nothing to append' USING ERRCODE = '22023';
    END IF;

    SELECT e.at, coalesce({event_store}.event_fault(e.value),
               CASE WHEN e.value ? 'stream' OR e.value ? 'expected_version'
                    THEN 'has a "stream" or "expected_version", which are arguments of append' END) AS text
      INTO fault
      FROM jsonb_array_elements(append.events) WITH ORDINALITY AS e (value, at)
     WHERE {event_store}.event_fault(e.value) IS NOT NULL
        OR e.value ? 'stream' OR e.value ? 'expected_version'
     ORDER BY e.at LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'event %: %', fault.at, fault.text USING ERRCODE = '22023';
    END IF;
    SELECT e.value ->> 'id' AS id INTO fault
      FROM jsonb_array_elements(append.events) AS e
     WHERE e.value ->> 'id' IS NOT NULL
     GROUP BY lower(e.value ->> 'id'), e.value ->> 'id' HAVING count(*) > 1 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'two of the events have the id %', fault.id USING ERRCODE = '22023';
    END IF;

    PERFORM {event_store}.lock_streams(ARRAY[append.stream]);

    -- A statement of its own, so that it sees what was committed while it waited for the lock.
    SELECT count(*) AS known, min(known_event.position) AS first, max(known_event.position) AS last, max(known_event.version) AS version,
           min(known_event.stream) FILTER (WHERE known_event.stream <> append.stream) AS elsewhere,
           min(known_event.id::text) FILTER (WHERE known_event.stream <> append.stream) AS id
      INTO fault
      FROM jsonb_array_elements(append.events) AS e
      JOIN {event_store}.events AS known_event ON known_event.id = (e.value ->> 'id')::uuid;
    known := fault.known;
    IF fault.elsewhere IS NOT NULL THEN
        RAISE EXCEPTION 'the event id % already stands in the stream "%"', fault.id, fault.elsewhere
            USING ERRCODE = '23505';
    ELSIF known = given THEN
        RETURN QUERY SELECT fault.first, fault.last, fault.version;
        RETURN;
    ELSIF known > 0 THEN
        RAISE EXCEPTION '% of the % events already stand in the stream "%", the others do not', known, given, append.stream
            USING ERRCODE = '23505', HINT = 'An append is recorded as a whole. Send the new events alone.';
    END IF;

    SELECT coalesce(max(e.version), 0) INTO base FROM {event_store}.events AS e WHERE e.stream = append.stream;
    IF append.expected_version <> base THEN
        RAISE EXCEPTION 'the stream "%" is at version %, not at the expected version %', append.stream, base, append.expected_version
            USING ERRCODE = '40001';
    END IF;

    -- Under REPEATABLE READ the snapshot may be older than the lock; then the rows collide and are not inserted.
    WITH inserted AS (
        INSERT INTO {event_store}.events AS target (stream, version, id, type, schema_version, data, metadata)
        SELECT append.stream, base + e.at, coalesce((e.value ->> 'id')::uuid, gen_random_uuid()), e.value ->> 'type',
               coalesce((e.value ->> 'schema_version')::numeric::integer, 1), e.value -> 'data',
               coalesce(nullif(e.value -> 'metadata', 'null'), '{}')
          FROM jsonb_array_elements(append.events) WITH ORDINALITY AS e (value, at)
         ORDER BY e.at
        ON CONFLICT DO NOTHING
        RETURNING target.position
    )
    SELECT count(*), min(inserted.position), max(inserted.position)
      INTO landed, first_position, last_position FROM inserted;
    IF landed <> given THEN
        RAISE EXCEPTION 'another transaction appended to the stream "%", or used the same event id, at the same time', append.stream
            USING ERRCODE = '40001', HINT = 'Try the transaction again.';
    END IF;
    version := base + given;
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION {event_store}.append(text, bigint, jsonb) IS
    'Appends an array of {"type", "data", "metadata"?, "id"?, "schema_version"?} to a stream, in the caller''s transaction. '
    'expected_version: null = any, 0 = new stream; a conflict is SQLSTATE 40001. '
    'The same ids again: nothing is appended and the positions of the first time are returned; only some of them: SQLSTATE 23505.';

CREATE FUNCTION {event_store}.append_batch(events jsonb)
RETURNS TABLE (appended bigint, duplicates bigint, first_position bigint, last_position bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    fault   record;
    landed  bigint;
    planned bigint;
BEGIN
    IF jsonb_typeof(append_batch.events) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'events is no JSON array' USING ERRCODE = '22023';
    END IF;
    SELECT e.at, {event_store}.event_fault(e.value) AS text INTO fault
      FROM jsonb_array_elements(append_batch.events) WITH ORDINALITY AS e (value, at)
     WHERE {event_store}.event_fault(e.value) IS NOT NULL OR e.value ->> 'stream' IS NULL
     ORDER BY e.at LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'event %: %', fault.at, coalesce(fault.text, 'has no "stream"') USING ERRCODE = '22023';
    END IF;

    PERFORM {event_store}.lock_streams(
        ARRAY(SELECT DISTINCT e.value ->> 'stream' FROM jsonb_array_elements(append_batch.events) AS e));

    WITH line AS MATERIALIZED (
        SELECT e.at, e.value ->> 'stream' AS stream, (e.value ->> 'id')::uuid AS id, e.value,
               (e.value ->> 'expected_version')::numeric::bigint AS expected
          FROM jsonb_array_elements(append_batch.events) WITH ORDINALITY AS e (value, at)
    ), met AS (
        -- Where the id of a line was met before: in the store, or on an earlier line.
        SELECT line.*, coalesce(known.stream, CASE WHEN line.id IS NOT NULL AND first_value(line.at) OVER same < line.at
                                                   THEN first_value(line.stream) OVER same END) AS met_in
          FROM line LEFT JOIN {event_store}.events AS known ON known.id = line.id
        WINDOW same AS (PARTITION BY line.id ORDER BY line.at)
    ), base AS (
        SELECT name.stream, coalesce((SELECT max(e.version) FROM {event_store}.events AS e WHERE e.stream = name.stream), 0) AS version
          FROM (SELECT DISTINCT line.stream FROM line) AS name
    ), plan AS MATERIALIZED (
        SELECT met.*, base.version + count(*) FILTER (WHERE met.met_in IS NULL)
                   OVER (PARTITION BY met.stream ORDER BY met.at) AS version
          FROM met JOIN base ON base.stream = met.stream
    ), fault AS MATERIALIZED (
        SELECT plan.at, plan.stream, plan.expected, plan.version, plan.met_in, plan.id
          FROM plan
         WHERE plan.met_in <> plan.stream OR (plan.met_in IS NULL AND plan.expected <> plan.version - 1)
         ORDER BY plan.at LIMIT 1
    ), inserted AS (
        INSERT INTO {event_store}.events AS target (stream, version, id, type, schema_version, data, metadata)
        SELECT plan.stream, plan.version, coalesce(plan.id, gen_random_uuid()), plan.value ->> 'type',
               coalesce((plan.value ->> 'schema_version')::numeric::integer, 1), plan.value -> 'data',
               coalesce(nullif(plan.value -> 'metadata', 'null'), '{}')
          FROM plan
         WHERE plan.met_in IS NULL AND NOT EXISTS (SELECT FROM fault)
         ORDER BY plan.at
        ON CONFLICT DO NOTHING
        RETURNING target.position
    )
    SELECT fault.*, p.planned, p.duplicates, i.*
      INTO fault
      FROM (SELECT count(*) FILTER (WHERE plan.met_in IS NULL) AS planned,
                   count(*) FILTER (WHERE plan.met_in IS NOT NULL) AS duplicates FROM plan) AS p
     CROSS JOIN (SELECT count(*) AS landed, min(inserted.position) AS first, max(inserted.position) AS last FROM inserted) AS i
      LEFT JOIN fault ON true;

    IF fault.met_in IS NOT NULL THEN
        RAISE EXCEPTION 'event %: the id % already stands in the stream "%", not in "%"', fault.at, fault.id, fault.met_in, fault.stream
            USING ERRCODE = '23505';
    ELSIF fault.at IS NOT NULL THEN
        RAISE EXCEPTION 'event %: the stream "%" is at version %, not at the expected version %',
            fault.at, fault.stream, fault.version - 1, fault.expected USING ERRCODE = '40001';
    ELSIF fault.landed <> fault.planned THEN
        RAISE EXCEPTION 'another transaction appended to the same streams, or used the same event ids, at the same time'
            USING ERRCODE = '40001', HINT = 'Try the transaction again.';
    END IF;
    RETURN QUERY SELECT fault.landed, fault.duplicates, fault.first, fault.last;
END $$;
COMMENT ON FUNCTION {event_store}.append_batch(jsonb) IS
    'Appends events of many streams at once, in the order of the array: each element is one append of its own with "stream" and "expected_version"?, all or none. '
    'Elements whose id is already there are counted as duplicates. Serves projector-host append.';
