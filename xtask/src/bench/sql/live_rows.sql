-- Milliseconds, middle and 99th of a hundred, from an event's commit to that of its row; and how many rows there are.
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seen) * 1000, percentile_cont(0.99) WITHIN GROUP (ORDER BY seen) * 1000,
       count(*)
FROM (
    SELECT extract(epoch FROM pg_xact_commit_timestamp(o.xmin) - pg_xact_commit_timestamp(e.xmin)) AS seen
    FROM event_store.events e JOIN order_g1.orders o ON o.last_position = e.position
) AS rows
