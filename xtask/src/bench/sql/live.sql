-- Appends one new order after the other at a steady pace, a transaction each, and remembers how long each took.
CREATE TABLE live_commits (append_micros bigint NOT NULL, commit_micros bigint NOT NULL);
CREATE PROCEDURE live_append(events integer, pause interval) LANGUAGE plpgsql AS $$
DECLARE
    began timestamptz := clock_timestamp();
    before timestamptz;
    appended timestamptz;
    append_took bigint[] := '{}';
    commit_took bigint[] := '{}';
    order_uuid uuid;
BEGIN
    FOR number IN 1..events LOOP
        order_uuid := gen_random_uuid();
        before := clock_timestamp();
        PERFORM event_store.append('order-' || order_uuid, NULL, jsonb_build_array(jsonb_build_object(
            'type', 'OrderCreated', 'data', jsonb_build_object(
                'merchant_id', '0a1b2c3d-4e5f-6789-abcd-ef0123456789', 'order_uuid', order_uuid, 'status', 'pending',
                'settlement_status', 'unsettled', 'amount_cents', number,
                'inserted_at', '2026-03-01T08:30:00Z', 'updated_at', '2026-03-01T08:30:00Z'))));
        appended := clock_timestamp();
        COMMIT;
        commit_took := commit_took || (extract(epoch FROM clock_timestamp() - appended) * 1000000)::bigint;
        append_took := append_took || (extract(epoch FROM appended - before) * 1000000)::bigint;
        PERFORM pg_sleep(greatest(0, extract(epoch FROM began + number * pause - clock_timestamp())));
    END LOOP;
    INSERT INTO live_commits SELECT * FROM unnest(append_took, commit_took);
END $$;
