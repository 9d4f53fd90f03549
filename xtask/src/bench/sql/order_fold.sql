-- The fold of the `order` projection as set-based SQL inside the database: no event leaves the server. What arrives
-- here has passed no check; the host's own work of parsing and checking every field is not repeated.
--
-- The statement is planned while the tables are empty, and that plan is kept. So every step has only one sensible
-- plan at any size: rows are looked up key by key (LATERAL with LIMIT) and changed where they were found (ctid), and
-- what would read whole tables is turned off for the session.
CREATE FUNCTION {schema}.cut(t text) RETURNS timestamptz LANGUAGE sql STABLE
RETURN CASE WHEN length(t) > 27 THEN left(t, 26) || 'Z' ELSE t END::timestamptz;

CREATE PROCEDURE {schema}.fold(upto bigint, batch integer) LANGUAGE plpgsql AS $$
DECLARE
    at bigint := 0;
    next bigint;
    types constant text[] := '{OrderCreated,OrderDetailsUpdated,OrderStatusChanged,OrderCancelled,OrderAssignmentUpdated,OrderSettlementUpdated}';
BEGIN
    PERFORM set_config('enable_hashjoin', 'off', false), set_config('enable_seqscan', 'off', false);
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
        ), folded AS MATERIALIZED (
            SELECT w.merchant_id, w.order_uuid, any_value(k.place) AS place, any_value(k.status) AS old_status, any_value(k.amount_cents) AS old_amount,
                   max(w.position) AS last_position,
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
            SELECT f.*, f.status ->> 'status' AS new_status,
                   (f.details ->> 'amount_cents')::numeric::bigint AS new_amount
            FROM folded f
        ), updated AS (
            UPDATE {schema}.orders o
            SET customer_uuid = CASE WHEN p.details IS NULL THEN o.customer_uuid ELSE (p.details ->> 'customer_uuid')::uuid END,
                amount_cents = coalesce(p.new_amount, o.amount_cents),
                notes = CASE WHEN p.details IS NULL THEN o.notes ELSE p.details ->> 'notes' END,
                status = coalesce(p.new_status, o.status),
                completed_at = CASE WHEN p.status IS NULL THEN o.completed_at ELSE {schema}.cut(p.status ->> 'completed_at') END,
                cancellation_reason = CASE WHEN p.reason IS NULL THEN o.cancellation_reason ELSE p.reason ->> 'cancellation_reason' END,
                scheduled_start_at = CASE WHEN p.assignment IS NULL THEN o.scheduled_start_at ELSE {schema}.cut(p.assignment ->> 'scheduled_start_at') END,
                scheduled_end_at = CASE WHEN p.assignment IS NULL THEN o.scheduled_end_at ELSE {schema}.cut(p.assignment ->> 'scheduled_end_at') END,
                dispatch_note = CASE WHEN p.assignment IS NULL THEN o.dispatch_note ELSE p.assignment ->> 'dispatch_note' END,
                settlement_status = CASE WHEN p.settlement IS NULL THEN o.settlement_status ELSE p.settlement ->> 'settlement_status' END,
                settlement_note = CASE WHEN p.settlement IS NULL THEN o.settlement_note ELSE p.settlement ->> 'settlement_note' END,
                paid_amount_cents = CASE WHEN p.settlement IS NULL THEN o.paid_amount_cents ELSE (p.settlement ->> 'paid_amount_cents')::numeric::bigint END,
                payment_method = CASE WHEN p.settlement IS NULL THEN o.payment_method ELSE p.settlement ->> 'payment_method' END,
                paid_at = CASE WHEN p.settlement IS NULL THEN o.paid_at ELSE {schema}.cut(p.settlement ->> 'paid_at') END,
                updated_at = {schema}.cut(p.last ->> 'updated_at'),
                last_position = p.last_position
            FROM parsed p
            WHERE o.ctid = p.place
        ), inserted AS (
            INSERT INTO {schema}.orders
                (merchant_id, order_uuid, request_uuid, customer_uuid, status, settlement_status, amount_cents,
                 paid_amount_cents, payment_method, scheduled_start_at, scheduled_end_at, completed_at, paid_at,
                 cancellation_reason, notes, dispatch_note, settlement_note, inserted_at, updated_at, last_position)
            SELECT p.merchant_id, p.order_uuid, (p.created ->> 'request_id')::uuid, (p.details ->> 'customer_uuid')::uuid,
                   p.new_status, p.settlement ->> 'settlement_status', p.new_amount,
                   (p.settlement ->> 'paid_amount_cents')::numeric::bigint, p.settlement ->> 'payment_method',
                   {schema}.cut(p.assignment ->> 'scheduled_start_at'), {schema}.cut(p.assignment ->> 'scheduled_end_at'),
                   {schema}.cut(p.status ->> 'completed_at'), {schema}.cut(p.settlement ->> 'paid_at'),
                   p.reason ->> 'cancellation_reason', p.details ->> 'notes', p.assignment ->> 'dispatch_note',
                   p.settlement ->> 'settlement_note', {schema}.cut(p.created ->> 'inserted_at'),
                   {schema}.cut(p.last ->> 'updated_at'), p.last_position
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
