//! The tables of this projection, and the keys of their rows.

use projection_domain::Identity;
use projector_sdk::ColumnType::{BigInt, Text, Timestamptz, Uuid};
use projector_sdk::{Description, Key, Table};

use crate::event::TYPES;

/// The requests as they stand.
pub const REQUESTS: &str = "service_requests";
/// How many requests stand in each status.
pub const FUNNEL: &str = "request_funnel";

/// Everything that the host needs to know.
pub fn describe() -> Description {
    Description::new("service-request", env!("CARGO_PKG_VERSION"))
        .events(TYPES)
        .reads()
        .table(
            Table::new(REQUESTS)
                .column("merchant_id", Uuid)
                .column("request_uuid", Uuid)
                .column("customer_uuid", Uuid)
                .column("creator_uuid", Uuid)
                .nullable("service_catalog_uuid", Uuid)
                .column("service_content", Text)
                .nullable("appointment_start_at", Timestamptz)
                .nullable("appointment_end_at", Timestamptz)
                .column("status", Text)
                .column("source", Text)
                .nullable("notes", Text)
                .column("inserted_at", Timestamptz)
                .column("updated_at", Timestamptz)
                .column("last_position", BigInt)
                .primary_key(["merchant_id", "request_uuid"])
                .index(["merchant_id", "status"])
                .index(["merchant_id", "appointment_start_at"]),
        )
        .table(
            Table::new(FUNNEL)
                .column("merchant_id", Uuid)
                .column("status", Text)
                .column_or("requests", BigInt, "0")
                .primary_key(["merchant_id", "status"]),
        )
}

/// The key of a request's row.
pub fn request(request: Identity) -> Key {
    request.key(REQUESTS, "request_uuid")
}
