-- {events} order events of {orders} orders of a hundred merchants: each order is created, then their status changes in turn.
INSERT INTO event_store.events (stream, version, type, data, metadata)
SELECT 'order-' || order_uuid, 1 + number / {orders}, e.type,
       jsonb_build_object('merchant_id', md5('merchant ' || number % {orders} % 100)::uuid, 'order_uuid', order_uuid,
                          'operator_uuid', md5('operator')::uuid, 'completed_at', NULL, 'updated_at', at) || e.more,
       '{"source": "bench"}'
FROM generate_series(0, {events} - 1) AS number,
     LATERAL (SELECT md5('order ' || number % {orders})::uuid AS order_uuid,
                     to_char(timestamp '2026-01-01' + number * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS at) AS o,
     LATERAL (
         SELECT 'OrderCreated' AS type, jsonb_build_object('request_id', NULL, 'customer_uuid', md5('customer ' || number)::uuid,
                'status', 'pending', 'settlement_status', 'unsettled', 'amount_cents', 1000 + number % 1000, 'inserted_at', at,
                'scheduled_start_at', NULL, 'scheduled_end_at', NULL, 'cancellation_reason', NULL, 'paid_amount_cents', NULL,
                'payment_method', NULL, 'paid_at', NULL, 'notes', NULL, 'dispatch_note', NULL, 'settlement_note', NULL) AS more
         WHERE number < {orders}
         UNION ALL
         SELECT 'OrderStatusChanged', jsonb_build_object('status', CASE number / {orders} % 2 WHEN 0 THEN 'confirmed' ELSE 'dispatching' END)
         WHERE number >= {orders}
     ) AS e
ORDER BY number
