//! The tables of this projection, and the keys of their rows.

use projection_domain::Identity;
use projector_sdk::ColumnType::{BigInt, Jsonb, Text, Timestamptz, Uuid};
use projector_sdk::{Description, Key, Table};

use crate::event::TYPES;

/// The orders as they stand.
pub const ORDERS: &str = "orders";
/// What changed in each.
pub const CHANGE_LOGS: &str = "order_change_logs";
/// How many stand in each status, and what they are worth.
pub const TOTALS: &str = "order_totals";

/// Everything that the host needs to know.
pub fn describe(change_logs: bool) -> Description {
    let mut description = Description::new("order", env!("CARGO_PKG_VERSION"))
        .events(TYPES)
        .reads()
        .table(orders());
    if change_logs {
        description = description.table(logs());
    }
    description.table(totals())
}

/// The key of an order's row.
pub fn order(order: Identity) -> Key {
    order.key(ORDERS, "order_uuid")
}

/// The columns that stand in the change log's `before` and `after`.
pub fn is_logged(column: &str) -> bool {
    !matches!(column, "merchant_id" | "order_uuid" | "last_position")
}

fn orders() -> Table {
    Table::new(ORDERS)
        .column("merchant_id", Uuid)
        .column("order_uuid", Uuid)
        .nullable("request_uuid", Uuid)
        .nullable("customer_uuid", Uuid)
        .column("status", Text)
        .column("settlement_status", Text)
        .column("amount_cents", BigInt)
        .nullable("paid_amount_cents", BigInt)
        .nullable("payment_method", Text)
        .nullable("scheduled_start_at", Timestamptz)
        .nullable("scheduled_end_at", Timestamptz)
        .nullable("completed_at", Timestamptz)
        .nullable("paid_at", Timestamptz)
        .nullable("cancellation_reason", Text)
        .nullable("notes", Text)
        .nullable("dispatch_note", Text)
        .nullable("settlement_note", Text)
        .column("inserted_at", Timestamptz)
        .column("updated_at", Timestamptz)
        .column("last_position", BigInt)
        .primary_key(["merchant_id", "order_uuid"])
        .index(["merchant_id", "status"])
        .index(["merchant_id", "scheduled_start_at"])
        .index(["merchant_id", "request_uuid"])
}

fn logs() -> Table {
    Table::new(CHANGE_LOGS)
        .column("merchant_id", Uuid)
        .column("order_uuid", Uuid)
        .column("position", BigInt)
        .column("action", Text)
        .nullable("operator_uuid", Uuid)
        .nullable("before", Jsonb)
        .column("after", Jsonb)
        .column("changed_at", Timestamptz)
        .primary_key(["merchant_id", "order_uuid", "position"])
}

fn totals() -> Table {
    Table::new(TOTALS)
        .column("merchant_id", Uuid)
        .column("status", Text)
        .column_or("orders", BigInt, "0")
        .column_or("amount_cents", BigInt, "0")
        .primary_key(["merchant_id", "status"])
}
