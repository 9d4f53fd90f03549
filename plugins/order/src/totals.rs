//! How many orders stand in each status and what they are worth, kept by adding what each event changes.
//!
//! Each event makes at most one addition to each total, with its net change, so that the host judges an overflow on
//! what the event does and not on a moment in between.

use projector_sdk::{Rows, Uuid, Value};

use crate::payload::Status;
use crate::tables::TOTALS;

/// What of an order its totals depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Where it stands.
    pub status: Status,
    /// What it is worth.
    pub amount_cents: i64,
}

/// A new order counts.
pub fn enter(merchant: Uuid, new: Share, rows: &mut Rows<'_>) {
    add(merchant, new.status, 1, new.amount_cents.into(), rows);
}

/// An order counts differently from now on.
pub fn shift(merchant: Uuid, old: Share, new: Share, rows: &mut Rows<'_>) {
    let (out, into) = (i128::from(old.amount_cents), i128::from(new.amount_cents));
    if old.status != new.status {
        add(merchant, old.status, -1, -out, rows);
        add(merchant, new.status, 1, into, rows);
    } else if out != into {
        add(merchant, new.status, 0, into - out, rows);
    }
}

fn add(merchant: Uuid, status: Status, orders: i64, amount_cents: i128, rows: &mut Rows<'_>) {
    rows.table(TOTALS)
        .key("merchant_id", merchant)
        .key("status", status)
        .set("orders", orders)
        .set("amount_cents", Value::whole(amount_cents))
        .add();
}
