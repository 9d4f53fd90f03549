-- The fold of the `order` projection as set-based SQL inside the database: no event leaves the server. What arrives
-- here has passed no check; the host's own work of parsing and checking every field is not repeated.
--
-- The statement is planned while the tables are empty, and that plan is kept. So every step has only one sensible
-- plan at any size: rows are looked up key by key (LATERAL with LIMIT) and changed where they were found (ctid), and
-- what would read whole tables is turned off for the session. Payloads are copied as seldom as can be: the last one of
-- each kind is taken (any_value over one common sort), and what is kept for the three writes is narrow.
CREATE FUNCTION {schema}.cut(t text) RETURNS timestamptz LANGUAGE sql STABLE
RETURN CASE WHEN length(t) > 27 THEN left(t, 26) || 'Z' ELSE t END::timestamptz;

CREATE PROCEDURE {schema}.fold(upto bigint, batch integer) LANGUAGE plpgsql AS $$
DECLARE
    at bigint := 0;
    next bigint;
    types constant text[] := '{OrderCreated,OrderDetailsUpdated,OrderStatusChanged,OrderCancelled,OrderAssignmentUpdated,OrderSettlementUpdated}';
BEGIN
    PERFORM set_config('enable_hashjoin', 'off', false), set_config('enable_seqscan', 'off', false),
        set_config('work_mem', '64MB', false);
    LOOP
        WITH wanted AS MATERIALIZED (
            SELECT e.position, e.type, e.data,
                   coalesce(e.data ->> 'merchant_id', right(e.data ->> 'tenant_schema', 32))::uuid AS merchant_id,
                   (e.data ->> 'order_uuid')::uuid AS order_uuid
            FROM event_store.events e
            WHERE e.position > at AND e.position <= upto AND e.type = ANY (types)
            ORDER BY e.position LIMIT batch
        ), keys AS MATERIALIZED (
            SELECT w.merchant_id, w.order_uuid, min(w.position) FILTER (WHERE w.type = 'OrderCreated') AS born
            FROM wanted w GROUP BY 1, 2
        ), known AS MATERIALIZED (
            SELECT k.merchant_id, k.order_uuid, k.born, o.place, o.status, o.amount_cents
            FROM keys k LEFT JOIN LATERAL (
                SELECT o.ctid AS place, o.status, o.amount_cents FROM {schema}.orders o
                WHERE o.merchant_id = k.merchant_id AND o.order_uuid = k.order_uuid LIMIT 1
            ) o ON true
            WHERE o.place IS NOT NULL OR k.born IS NOT NULL
        ), folded AS NOT MATERIALIZED (
            SELECT w.merchant_id, w.order_uuid, any_value(k.place) AS place, any_value(k.status) AS old_status,
                   any_value(k.amount_cents) AS old_amount, max(w.position) AS last_position,
                   any_value(w.data ORDER BY w.position DESC) AS last,
                   any_value(w.data ORDER BY w.position DESC) FILTER (WHERE w.type = 'OrderCreated') AS created,
                   any_value(w.data ORDER BY w.position DESC) FILTER (WHERE w.type IN ('OrderCreated', 'OrderDetailsUpdated')) AS details,
                   any_value(CASE w.type WHEN 'OrderCancelled' THEN '{"status": "cancelled"}' ELSE w.data END ORDER BY w.position DESC)
                       FILTER (WHERE w.type IN ('OrderCreated', 'OrderStatusChanged', 'OrderCancelled')) AS status,
                   any_value(w.data ORDER BY w.position DESC) FILTER (WHERE w.type IN ('OrderCreated', 'OrderCancelled')) AS reason,
                   any_value(w.data ORDER BY w.position DESC) FILTER (WHERE w.type IN ('OrderCreated', 'OrderAssignmentUpdated')) AS assignment,
                   any_value(w.data ORDER BY w.position DESC) FILTER (WHERE w.type IN ('OrderCreated', 'OrderSettlementUpdated')) AS settlement
            FROM wanted w JOIN known k USING (merchant_id, order_uuid)
            WHERE CASE WHEN k.place IS NOT NULL THEN w.type <> 'OrderCreated'
                       ELSE w.position = k.born OR (w.position > k.born AND w.type <> 'OrderCreated') END
            GROUP BY 1, 2
        ), parsed AS MATERIALIZED (
            SELECT f.merchant_id, f.order_uuid, f.place, f.old_status, f.old_amount, f.last_position,
                   f.details IS NOT NULL AS has_details, f.status IS NOT NULL AS has_status,
                   f.reason IS NOT NULL AS has_reason, f.assignment IS NOT NULL AS has_assignment, f.settlement IS NOT NULL AS has_settlement,
                   (f.created ->> 'request_id')::uuid AS request_uuid, f.created ->> 'inserted_at' AS inserted_at,
                   (f.details ->> 'customer_uuid')::uuid AS customer_uuid, (f.details ->> 'amount_cents')::numeric::bigint AS new_amount,
                   f.details ->> 'notes' AS notes, f.status ->> 'status' AS new_status, f.status ->> 'completed_at' AS completed_at,
                   f.reason ->> 'cancellation_reason' AS cancellation_reason, f.assignment ->> 'scheduled_start_at' AS scheduled_start_at,
                   f.assignment ->> 'scheduled_end_at' AS scheduled_end_at, f.assignment ->> 'dispatch_note' AS dispatch_note,
                   f.settlement ->> 'settlement_status' AS settlement_status, f.settlement ->> 'settlement_note' AS settlement_note,
                   (f.settlement ->> 'paid_amount_cents')::numeric::bigint AS paid_amount_cents, f.settlement ->> 'payment_method' AS payment_method,
                   f.settlement ->> 'paid_at' AS paid_at, f.last ->> 'updated_at' AS updated_at
            FROM folded f
        ), updated AS (
            UPDATE {schema}.orders o
            SET customer_uuid = CASE WHEN p.has_details THEN p.customer_uuid ELSE o.customer_uuid END,
                amount_cents = coalesce(p.new_amount, o.amount_cents),
                notes = CASE WHEN p.has_details THEN p.notes ELSE o.notes END,
                status = coalesce(p.new_status, o.status),
                completed_at = CASE WHEN p.has_status THEN {schema}.cut(p.completed_at) ELSE o.completed_at END,
                cancellation_reason = CASE WHEN p.has_reason THEN p.cancellation_reason ELSE o.cancellation_reason END,
                scheduled_start_at = CASE WHEN p.has_assignment THEN {schema}.cut(p.scheduled_start_at) ELSE o.scheduled_start_at END,
                scheduled_end_at = CASE WHEN p.has_assignment THEN {schema}.cut(p.scheduled_end_at) ELSE o.scheduled_end_at END,
                dispatch_note = CASE WHEN p.has_assignment THEN p.dispatch_note ELSE o.dispatch_note END,
                settlement_status = CASE WHEN p.has_settlement THEN p.settlement_status ELSE o.settlement_status END,
                settlement_note = CASE WHEN p.has_settlement THEN p.settlement_note ELSE o.settlement_note END,
                paid_amount_cents = CASE WHEN p.has_settlement THEN p.paid_amount_cents ELSE o.paid_amount_cents END,
                payment_method = CASE WHEN p.has_settlement THEN p.payment_method ELSE o.payment_method END,
                paid_at = CASE WHEN p.has_settlement THEN {schema}.cut(p.paid_at) ELSE o.paid_at END,
                updated_at = {schema}.cut(p.updated_at),
                last_position = p.last_position
            FROM parsed p
            WHERE o.ctid = p.place
        ), inserted AS (
            INSERT INTO {schema}.orders
                (merchant_id, order_uuid, request_uuid, customer_uuid, status, settlement_status, amount_cents,
                 paid_amount_cents, payment_method, scheduled_start_at, scheduled_end_at, completed_at, paid_at,
                 cancellation_reason, notes, dispatch_note, settlement_note, inserted_at, updated_at, last_position)
            SELECT p.merchant_id, p.order_uuid, p.request_uuid, p.customer_uuid, p.new_status, p.settlement_status, p.new_amount,
                   p.paid_amount_cents, p.payment_method, {schema}.cut(p.scheduled_start_at), {schema}.cut(p.scheduled_end_at),
                   {schema}.cut(p.completed_at), {schema}.cut(p.paid_at), p.cancellation_reason, p.notes, p.dispatch_note,
                   p.settlement_note, {schema}.cut(p.inserted_at), {schema}.cut(p.updated_at), p.last_position
            FROM parsed p WHERE p.place IS NULL
        ), totals AS (
            INSERT INTO {schema}.order_totals AS t (merchant_id, status, orders, amount_cents)
            SELECT d.merchant_id, d.status, sum(d.orders), sum(d.amount)
            FROM (
                SELECT p.merchant_id, p.old_status AS status, -1 AS orders, -p.old_amount AS amount FROM parsed p WHERE p.place IS NOT NULL
                UNION ALL
                SELECT p.merchant_id, coalesce(p.new_status, p.old_status), 1, coalesce(p.new_amount, p.old_amount) FROM parsed p
            ) d
            GROUP BY 1, 2
            HAVING sum(d.orders) <> 0 OR sum(d.amount) <> 0
            ON CONFLICT (merchant_id, status) DO UPDATE
            SET orders = t.orders + EXCLUDED.orders, amount_cents = t.amount_cents + EXCLUDED.amount_cents
        )
        UPDATE {schema}.checkpoint c SET position = l.position
        FROM (SELECT max(position) AS position FROM wanted) l
        WHERE c.position = at AND l.position IS NOT NULL
        RETURNING c.position INTO next;
        EXIT WHEN next IS NULL;
        COMMIT;
        at := next;
    END LOOP;
END $$;
