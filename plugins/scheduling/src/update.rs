//! What each event does to the schedule of its order and to the load of its worker.

use projector_sdk::{Failure, Row, RowWrite, Rows, Uuid, Value};

use crate::event::{ScheduleChange, ScheduleEvent};
use crate::load::{self, Share};
use crate::payload::{Created, Status};
use crate::tables;

/// A creation inserts the schedule unless there is one; everything else needs one and is passed over without.
pub fn apply(event: ScheduleEvent, rows: &mut Rows<'_>) -> Result<(), Failure> {
    let ScheduleEvent { order, change } = event;
    let key = tables::schedule(order);
    let old = rows.get(&key)?.map(share).transpose()?;
    let new = match (old, change) {
        (None, ScheduleChange::Created(created)) => {
            let new = Share {
                worker: created.assigned_user_uuid,
                status: created.status,
            };
            insert(rows.row(&key), *created);
            Some(new)
        }
        (Some(old), ScheduleChange::Updated(updated)) => {
            rows.row(&key)
                .set("worker_uuid", updated.assigned_user_uuid)
                .set("start_at", updated.start_at)
                .set("end_at", updated.end_at)
                .set("notes", updated.notes)
                .set("updated_at", updated.updated_at)
                .set("last_position", Value::Position)
                .patch();
            Some(Share {
                worker: updated.assigned_user_uuid,
                ..old
            })
        }
        (Some(old), ScheduleChange::Status(changed)) => {
            rows.row(&key)
                .set("status", changed.status)
                .set("updated_at", changed.updated_at)
                .set("last_position", Value::Position)
                .patch();
            Some(Share {
                status: changed.status,
                ..old
            })
        }
        (Some(_), ScheduleChange::Deleted) => {
            rows.row(&key).remove();
            None
        }
        (old, _) => old,
    };
    load::shift(order.merchant, old, new, rows);
    Ok(())
}

fn share(row: &Row) -> Result<Share, Failure> {
    let worker = row.text("worker_uuid").and_then(Uuid::parse);
    let status = row.text("status").and_then(Status::from_word);
    match (worker, status) {
        (Some(worker), Some(status)) => Ok(Share { worker, status }),
        _ => Err(Failure::fatal(
            "unreadable-row",
            "a row of `schedules` has no worker or no known status",
        )),
    }
}

fn insert(row: RowWrite<'_, '_>, created: Created) {
    row.set("schedule_uuid", created.schedule_uuid)
        .set("worker_uuid", created.assigned_user_uuid)
        .set("start_at", created.start_at)
        .set("end_at", created.end_at)
        .set("status", created.status)
        .set("notes", created.notes)
        .set("inserted_at", created.inserted_at)
        .set("updated_at", created.updated_at)
        .set("last_position", Value::Position)
        .insert();
}
