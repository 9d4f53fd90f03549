//! What each event does to its request and to the funnel.

use projector_sdk::{Failure, Row, RowWrite, Rows, Uuid, Value};

use crate::event::{RequestChange, RequestEvent};
use crate::payload::{Created, Status};
use crate::tables::{self, FUNNEL};

/// A creation inserts the request unless there is one; everything else needs one and is passed over without.
pub fn apply(event: RequestEvent, rows: &mut Rows<'_>) -> Result<(), Failure> {
    let RequestEvent { request, change } = event;
    let key = tables::request(request);
    let old = rows.get(&key)?.map(status).transpose()?;
    let new = match (old, change) {
        (None, RequestChange::Created(created)) => {
            let status = created.status;
            insert(rows.row(&key), *created);
            Some(status)
        }
        (Some(old), RequestChange::Details(updated)) => {
            rows.row(&key)
                .set("service_catalog_uuid", updated.service_catalog_uuid)
                .set("service_content", updated.service_content)
                .set("appointment_start_at", updated.appointment_start_at)
                .set("appointment_end_at", updated.appointment_end_at)
                .set("notes", updated.notes)
                .set("updated_at", updated.updated_at)
                .set("last_position", Value::Position)
                .patch();
            Some(old)
        }
        (Some(_), RequestChange::Status(changed)) => {
            rows.row(&key)
                .set("status", changed.status)
                .set("updated_at", changed.updated_at)
                .set("last_position", Value::Position)
                .patch();
            Some(changed.status)
        }
        (old, _) => old,
    };
    shift(request.merchant, old, new, rows);
    Ok(())
}

/// A request counts here from now on and there no longer.
fn shift(merchant: Uuid, old: Option<Status>, new: Option<Status>, rows: &mut Rows<'_>) {
    if old == new {
        return;
    }
    for (status, requests) in [(old, -1_i64), (new, 1)] {
        if let Some(status) = status {
            rows.table(FUNNEL)
                .key("merchant_id", merchant)
                .key("status", status)
                .set("requests", requests)
                .add();
        }
    }
}

fn status(row: &Row) -> Result<Status, Failure> {
    row.text("status")
        .and_then(Status::from_word)
        .ok_or_else(|| {
            Failure::fatal(
                "unreadable-row",
                "a row of `service_requests` has no known status",
            )
        })
}

fn insert(row: RowWrite<'_, '_>, created: Created) {
    row.set("customer_uuid", created.customer_uuid)
        .set("creator_uuid", created.creator_uuid)
        .set("service_catalog_uuid", created.service_catalog_uuid)
        .set("service_content", created.service_content)
        .set("appointment_start_at", created.appointment_start_at)
        .set("appointment_end_at", created.appointment_end_at)
        .set("status", created.status)
        .set("source", created.source)
        .set("notes", created.notes)
        .set("inserted_at", created.inserted_at)
        .set("updated_at", created.updated_at)
        .set("last_position", Value::Position)
        .insert();
}
