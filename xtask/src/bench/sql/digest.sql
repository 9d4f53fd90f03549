-- One line that two sets of tables share only when all their rows are the same; totals of zero orders may stay or not.
SELECT (SELECT count(*) || ':' || coalesce(sum(hashtextextended((merchant_id, order_uuid, request_uuid, customer_uuid, status,
            settlement_status, amount_cents, paid_amount_cents, payment_method, scheduled_start_at, scheduled_end_at,
            completed_at, paid_at, cancellation_reason, notes, dispatch_note, settlement_note, inserted_at, updated_at,
            last_position)::text, 7)::numeric), 0) FROM {schema}.orders)
    || ' ' ||
       (SELECT count(*) || ':' || coalesce(sum(hashtextextended((merchant_id, status, orders, amount_cents)::text, 7)::numeric), 0)
        FROM {schema}.order_totals WHERE orders <> 0)
