-- The tables of the `order` projection without its change log, for peers that fold into them. {schema} is theirs.
CREATE SCHEMA {schema};
CREATE TABLE {schema}.orders (
    merchant_id uuid NOT NULL, order_uuid uuid NOT NULL, request_uuid uuid, customer_uuid uuid,
    status text NOT NULL, settlement_status text NOT NULL, amount_cents bigint NOT NULL, paid_amount_cents bigint,
    payment_method text, scheduled_start_at timestamptz, scheduled_end_at timestamptz, completed_at timestamptz,
    paid_at timestamptz, cancellation_reason text, notes text, dispatch_note text, settlement_note text,
    inserted_at timestamptz NOT NULL, updated_at timestamptz NOT NULL, last_position bigint NOT NULL,
    PRIMARY KEY (merchant_id, order_uuid)
);
CREATE INDEX ON {schema}.orders (merchant_id, status);
CREATE INDEX ON {schema}.orders (merchant_id, scheduled_start_at);
CREATE INDEX ON {schema}.orders (merchant_id, request_uuid);
CREATE TABLE {schema}.order_totals (
    merchant_id uuid NOT NULL, status text NOT NULL, orders bigint NOT NULL DEFAULT 0,
    amount_cents bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (merchant_id, status)
);
CREATE TABLE {schema}.checkpoint (position bigint NOT NULL);
INSERT INTO {schema}.checkpoint VALUES (0);
