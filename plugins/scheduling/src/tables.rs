//! The tables of this projection, and the keys of their rows.

use projection_domain::Identity;
use projector_sdk::ColumnType::{BigInt, Text, Timestamptz, Uuid};
use projector_sdk::{Description, Key, Table};

use crate::event::TYPES;

/// The schedules as they stand, one an order.
pub const SCHEDULES: &str = "schedules";
/// How many schedules each worker has in each status.
pub const LOAD: &str = "worker_load";

/// Everything that the host needs to know.
pub fn describe() -> Description {
    Description::new("scheduling", env!("CARGO_PKG_VERSION"))
        .events(TYPES)
        .reads()
        .table(
            Table::new(SCHEDULES)
                .column("merchant_id", Uuid)
                .column("order_uuid", Uuid)
                .column("schedule_uuid", Uuid)
                .column("worker_uuid", Uuid)
                .column("start_at", Timestamptz)
                .column("end_at", Timestamptz)
                .column("status", Text)
                .nullable("notes", Text)
                .column("inserted_at", Timestamptz)
                .column("updated_at", Timestamptz)
                .column("last_position", BigInt)
                .primary_key(["merchant_id", "order_uuid"])
                .index(["merchant_id", "worker_uuid", "start_at", "end_at"]),
        )
        .table(
            Table::new(LOAD)
                .column("merchant_id", Uuid)
                .column("worker_uuid", Uuid)
                .column("status", Text)
                .column_or("schedules", BigInt, "0")
                .primary_key(["merchant_id", "worker_uuid", "status"]),
        )
}

/// The key of the schedule of an order.
pub fn schedule(order: Identity) -> Key {
    order.key(SCHEDULES, "order_uuid")
}
