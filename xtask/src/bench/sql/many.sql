-- Appends events at a steady pace, a transaction each; each is wanted by the next of so many projections.
CREATE PROCEDURE bench_many_append(events integer, pause interval, projections integer) LANGUAGE plpgsql AS $$
DECLARE
    began timestamptz := clock_timestamp();
BEGIN
    FOR number IN 1..events LOOP
        PERFORM event_store.append('bench-' || number, NULL, jsonb_build_array(jsonb_build_object(
            'type', 'many' || lpad((number % projections)::text, 3, '0'), 'data', jsonb_build_object('number', number))));
        COMMIT;
        PERFORM pg_sleep(greatest(0, extract(epoch FROM began + number * pause - clock_timestamp())));
    END LOOP;
END $$;
