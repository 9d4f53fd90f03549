-- A writer that appends one event a transaction for some time, and two ways of waking readers to choose from.
CREATE PROCEDURE bench_append(way text, since timestamptz, seconds double precision, INOUT commits bigint) LANGUAGE plpgsql AS $$
DECLARE
    upto timestamptz := since + seconds * interval '1 second';
    order_uuid uuid;
    data jsonb;
BEGIN
    commits := 0;
    PERFORM pg_sleep(greatest(0, extract(epoch FROM since - clock_timestamp())));
    WHILE clock_timestamp() < upto LOOP
        order_uuid := gen_random_uuid();
        data := jsonb_build_object(
            'merchant_id', '0a1b2c3d-4e5f-6789-abcd-ef0123456789', 'order_uuid', order_uuid, 'status', 'pending',
            'settlement_status', 'unsettled', 'amount_cents', 1,
            'inserted_at', '2026-03-01T08:30:00Z', 'updated_at', '2026-03-01T08:30:00Z');
        IF way = 'append' THEN
            PERFORM event_store.append('order-' || order_uuid, NULL,
                jsonb_build_array(jsonb_build_object('type', 'OrderCreated', 'data', data)));
        ELSE
            INSERT INTO event_store.events (stream, version, type, data)
            VALUES ('order-' || order_uuid, 1, 'OrderCreated', data);
        END IF;
        COMMIT;
        commits := commits + 1;
    END LOOP;
END $$;

-- What the store's own trigger would be without its guard: every transaction notifies, so all commits queue.
CREATE FUNCTION bench_wake() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('projector_events_event_store', '');
    RETURN NULL;
END $$;
CREATE TRIGGER bench_wake AFTER INSERT ON event_store.events FOR EACH STATEMENT EXECUTE FUNCTION bench_wake();
ALTER TABLE event_store.events DISABLE TRIGGER bench_wake;
