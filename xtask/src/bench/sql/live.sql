-- Appends one new order after the other at a steady pace, a transaction each, and remembers how long each commit took.
CREATE TABLE live_commits (micros bigint NOT NULL);
CREATE PROCEDURE live_append(events integer, pause interval) LANGUAGE plpgsql AS $$
DECLARE
    began timestamptz := clock_timestamp();
    before timestamptz;
    took bigint[] := '{}';
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
        COMMIT;
        took := took || (extract(epoch FROM clock_timestamp() - before) * 1000000)::bigint;
        PERFORM pg_sleep(greatest(0, extract(epoch FROM began + number * pause - clock_timestamp())));
    END LOOP;
    INSERT INTO live_commits SELECT unnest(took);
END $$;
