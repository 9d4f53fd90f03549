//! What each event does to the row of its order, to its log and to the totals.

use projection_domain::Identity;
use projector_sdk::{Failure, Key, Row, RowWrite, Rows, Value};

use crate::change_log::{ChangeLog, Entry};
use crate::event::OrderChange;
use crate::payload::{Created, Status};
use crate::tables;
use crate::totals::{self, Share};

/// A creation inserts the order; one that is there already stays as it is.
pub fn create(
    order: Identity,
    created: Created,
    log: &ChangeLog,
    rows: &mut Rows<'_>,
) -> Result<(), Failure> {
    let key = tables::order(order);
    if rows.get(&key)?.is_some() {
        return Ok(());
    }
    let entry = Entry {
        action: "created",
        operator: created.operator_uuid,
        changed_at: created.inserted_at,
        before: None,
    };
    let share = Share {
        status: created.status,
        amount_cents: created.amount_cents.0,
    };
    insert(rows.row(&key), created);
    let after = picture(&key, log, rows)?;
    log.write(order, entry, after, rows);
    totals::enter(order.merchant, share, rows);
    Ok(())
}

/// Every other event changes the order's row; without one it is passed over.
pub fn change(
    order: Identity,
    change: OrderChange,
    log: &ChangeLog,
    rows: &mut Rows<'_>,
) -> Result<(), Failure> {
    let key = tables::order(order);
    let Some(row) = rows.get(&key)? else {
        return Ok(());
    };
    let old = share(row)?;
    let entry = Entry {
        action: change.action(),
        operator: change.operator(),
        changed_at: change.changed_at(),
        before: log.picture(row),
    };
    let new = share_after(old, &change);
    patch(rows.row(&key), change);
    let after = picture(&key, log, rows)?;
    log.write(order, entry, after, rows);
    totals::shift(order.merchant, old, new, rows);
    Ok(())
}

fn picture(key: &Key, log: &ChangeLog, rows: &mut Rows<'_>) -> Result<Option<String>, Failure> {
    if !log.is_kept() {
        return Ok(None);
    }
    Ok(rows.get(key)?.and_then(|row| log.picture(row)))
}

fn share(row: &Row) -> Result<Share, Failure> {
    let status = row.text("status").and_then(Status::from_word);
    match (status, row.int("amount_cents")) {
        (Some(status), Some(amount_cents)) => Ok(Share {
            status,
            amount_cents,
        }),
        _ => Err(Failure::fatal(
            "unreadable-row",
            "a row of `orders` has no known status or no amount",
        )),
    }
}

fn share_after(old: Share, change: &OrderChange) -> Share {
    match change {
        OrderChange::Details(updated) => Share {
            amount_cents: updated.amount_cents.0,
            ..old
        },
        OrderChange::Status(changed) => Share {
            status: changed.status,
            ..old
        },
        OrderChange::Cancelled(_) => Share {
            status: Status::Cancelled,
            ..old
        },
        OrderChange::Assignment(_) | OrderChange::Settlement(_) => old,
    }
}

fn insert(row: RowWrite<'_, '_>, created: Created) {
    row.set("request_uuid", created.request_id)
        .set("customer_uuid", created.customer_uuid)
        .set("status", created.status)
        .set("settlement_status", created.settlement_status)
        .set("amount_cents", created.amount_cents)
        .set("paid_amount_cents", created.paid_amount_cents)
        .set("payment_method", created.payment_method)
        .set("scheduled_start_at", created.scheduled_start_at)
        .set("scheduled_end_at", created.scheduled_end_at)
        .set("completed_at", created.completed_at)
        .set("paid_at", created.paid_at)
        .set("cancellation_reason", created.cancellation_reason)
        .set("notes", created.notes)
        .set("dispatch_note", created.dispatch_note)
        .set("settlement_note", created.settlement_note)
        .set("inserted_at", created.inserted_at)
        .set("updated_at", created.updated_at)
        .set("last_position", Value::Position)
        .insert();
}

/// Each event replaces its whole group of fields: null clears.
fn patch(row: RowWrite<'_, '_>, change: OrderChange) {
    let updated_at = change.changed_at();
    let row = match change {
        OrderChange::Details(updated) => row
            .set("customer_uuid", updated.customer_uuid)
            .set("amount_cents", updated.amount_cents)
            .set("notes", updated.notes),
        OrderChange::Status(changed) => row
            .set("status", changed.status)
            .set("completed_at", changed.completed_at),
        OrderChange::Cancelled(cancelled) => row
            .set("status", Status::Cancelled)
            .set("cancellation_reason", cancelled.cancellation_reason)
            .set("completed_at", Value::Null),
        OrderChange::Assignment(updated) => row
            .set("scheduled_start_at", updated.scheduled_start_at)
            .set("scheduled_end_at", updated.scheduled_end_at)
            .set("dispatch_note", updated.dispatch_note),
        OrderChange::Settlement(updated) => row
            .set("settlement_status", updated.settlement_status)
            .set("settlement_note", updated.settlement_note)
            .set("paid_amount_cents", updated.paid_amount_cents)
            .set("payment_method", updated.payment_method)
            .set("paid_at", updated.paid_at),
    };
    row.set("updated_at", updated_at)
        .set("last_position", Value::Position)
        .patch();
}
