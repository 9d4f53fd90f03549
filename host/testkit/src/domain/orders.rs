//! The projection `order`: rows, change logs and totals.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Projection;
use super::events::{Event, Poison};
use super::fields::{Fields, into_text};
use super::ledger::{Ledger, Share};
use super::table::Kind::{Json, Plain, Time};
use super::table::{Kind, Layout, Row, Table, row};

static ORDERS: Layout = Layout {
    name: "orders",
    key: &["merchant_id", "order_uuid"],
    columns: &[
        ("merchant_id", Plain),
        ("order_uuid", Plain),
        ("request_uuid", Plain),
        ("customer_uuid", Plain),
        ("status", Plain),
        ("settlement_status", Plain),
        ("amount_cents", Plain),
        ("paid_amount_cents", Plain),
        ("payment_method", Plain),
        ("scheduled_start_at", Time),
        ("scheduled_end_at", Time),
        ("completed_at", Time),
        ("paid_at", Time),
        ("cancellation_reason", Plain),
        ("notes", Plain),
        ("dispatch_note", Plain),
        ("settlement_note", Plain),
        ("inserted_at", Time),
        ("updated_at", Time),
        ("last_position", Plain),
    ],
    zero: None,
};

static LOGS: Layout = Layout {
    name: "order_change_logs",
    key: &["merchant_id", "order_uuid", "position"],
    columns: &[
        ("merchant_id", Plain),
        ("order_uuid", Plain),
        ("position", Plain),
        ("action", Plain),
        ("operator_uuid", Plain),
        ("before", Json),
        ("after", Json),
        ("changed_at", Time),
    ],
    zero: None,
};

static TOTALS: Layout = Layout {
    name: "order_totals",
    key: &["merchant_id", "status"],
    columns: &[
        ("merchant_id", Plain),
        ("status", Plain),
        ("orders", Plain),
        ("amount_cents", Plain),
    ],
    zero: Some("orders"),
};

const STATUS: [&str; 6] = [
    "pending",
    "confirmed",
    "dispatching",
    "in_service",
    "completed",
    "cancelled",
];
const SETTLEMENT: [&str; 2] = ["unsettled", "settled"];

/// Merchant and identifier.
type Key = (String, String);

#[derive(Debug, Default)]
pub(super) struct Orders {
    orders: BTreeMap<Key, Row>,
    logs: Vec<Row>,
    totals: Ledger,
}

/// What an event says, before any row was looked at.
struct Said {
    action: &'static str,
    changed_at: &'static str,
    cells: Vec<(&'static str, Value)>,
    operator: Value,
}

impl Projection for Orders {
    fn name(&self) -> &'static str {
        "order"
    }

    fn apply(&mut self, event: &Event) -> Result<(), Poison> {
        let position = event.position;
        self.try_apply(event)
            .map_err(|reason| Poison { position, reason })
    }

    fn tables(&self) -> Vec<Table> {
        let totals = self.totals.entries().map(|(key, orders, amount)| {
            row([
                ("merchant_id", key[0].as_str().into()),
                ("status", key[1].as_str().into()),
                ("orders", orders),
                ("amount_cents", amount),
            ])
        });
        let orders = self.orders.values().cloned().collect();
        vec![
            Table {
                layout: &ORDERS,
                rows: orders,
            },
            Table {
                layout: &LOGS,
                rows: self.logs.clone(),
            },
            Table {
                layout: &TOTALS,
                rows: totals.collect(),
            },
        ]
    }
}

impl Orders {
    fn try_apply(&mut self, event: &Event) -> Result<(), String> {
        let Some((key, said)) = read(event)? else {
            return Ok(());
        };
        let before = self.orders.get(&key).cloned();
        if before.is_some() == (said.action == "created") {
            return Ok(());
        }
        let mut after = before.clone().unwrap_or_default();
        after.insert("merchant_id".into(), key.0.as_str().into());
        after.insert("order_uuid".into(), key.1.as_str().into());
        for (column, cell) in said.cells {
            after.insert(column.into(), cell);
        }
        after.insert("last_position".into(), event.position.into());
        self.totals
            .shift(before.as_ref().map(share), Some(share(&after)))?;
        self.logs.push(row([
            ("merchant_id", key.0.as_str().into()),
            ("order_uuid", key.1.as_str().into()),
            ("position", event.position.into()),
            ("action", said.action.into()),
            ("operator_uuid", said.operator),
            ("before", before.as_ref().map_or(Value::Null, picture)),
            ("after", picture(&after)),
            ("changed_at", after[said.changed_at].clone()),
        ]));
        self.orders.insert(key, after);
        Ok(())
    }
}

fn read(event: &Event) -> Result<Option<(Key, Said)>, String> {
    let said: fn(Fields<'_>) -> Result<Said, String> = match event.kind.as_str() {
        "OrderCreated" => created,
        "OrderDetailsUpdated" => details,
        "OrderStatusChanged" => status,
        "OrderCancelled" => cancelled,
        "OrderAssignmentUpdated" => assignment,
        "OrderSettlementUpdated" => settlement,
        _ => return Ok(None),
    };
    let fields = Fields::of(&event.data)?;
    let mut said = said(fields)?;
    said.operator = fields.uuid_or_null("operator_uuid")?;
    said.cells.push(("updated_at", fields.time("updated_at")?));
    let key = (fields.merchant()?, fields.identifier("order_uuid", None)?);
    Ok(Some((key, said)))
}

fn says(action: &'static str, cells: Vec<(&'static str, Value)>) -> Said {
    Said {
        action,
        changed_at: "updated_at",
        cells,
        operator: Value::Null,
    }
}

fn created(fields: Fields<'_>) -> Result<Said, String> {
    let cells = vec![
        ("request_uuid", fields.uuid_or_null("request_id")?),
        ("customer_uuid", fields.uuid_or_null("customer_uuid")?),
        ("status", fields.word("status", &STATUS)?),
        (
            "settlement_status",
            fields.word("settlement_status", &SETTLEMENT)?,
        ),
        ("amount_cents", fields.integer("amount_cents")?),
        (
            "paid_amount_cents",
            fields.integer_or_null("paid_amount_cents")?,
        ),
        ("payment_method", fields.text_or_null("payment_method")?),
        (
            "scheduled_start_at",
            fields.time_or_null("scheduled_start_at")?,
        ),
        ("scheduled_end_at", fields.time_or_null("scheduled_end_at")?),
        ("completed_at", fields.time_or_null("completed_at")?),
        ("paid_at", fields.time_or_null("paid_at")?),
        (
            "cancellation_reason",
            fields.text_or_null("cancellation_reason")?,
        ),
        ("notes", fields.text_or_null("notes")?),
        ("dispatch_note", fields.text_or_null("dispatch_note")?),
        ("settlement_note", fields.text_or_null("settlement_note")?),
        ("inserted_at", fields.time("inserted_at")?),
    ];
    Ok(Said {
        changed_at: "inserted_at",
        ..says("created", cells)
    })
}

fn details(fields: Fields<'_>) -> Result<Said, String> {
    Ok(says(
        "details_updated",
        vec![
            ("customer_uuid", fields.uuid_or_null("customer_uuid")?),
            ("amount_cents", fields.integer("amount_cents")?),
            ("notes", fields.text_or_null("notes")?),
        ],
    ))
}

fn status(fields: Fields<'_>) -> Result<Said, String> {
    Ok(says(
        "status_changed",
        vec![
            ("status", fields.word("status", &STATUS)?),
            ("completed_at", fields.time_or_null("completed_at")?),
        ],
    ))
}

fn cancelled(fields: Fields<'_>) -> Result<Said, String> {
    Ok(says(
        "cancelled",
        vec![
            ("status", "cancelled".into()),
            ("cancellation_reason", fields.text("cancellation_reason")?),
            ("completed_at", Value::Null),
        ],
    ))
}

fn assignment(fields: Fields<'_>) -> Result<Said, String> {
    Ok(says(
        "assignment_updated",
        vec![
            (
                "scheduled_start_at",
                fields.time_or_null("scheduled_start_at")?,
            ),
            ("scheduled_end_at", fields.time_or_null("scheduled_end_at")?),
            ("dispatch_note", fields.text_or_null("dispatch_note")?),
        ],
    ))
}

fn settlement(fields: Fields<'_>) -> Result<Said, String> {
    Ok(says(
        "settlement_updated",
        vec![
            (
                "settlement_status",
                fields.word("settlement_status", &SETTLEMENT)?,
            ),
            ("settlement_note", fields.text_or_null("settlement_note")?),
            (
                "paid_amount_cents",
                fields.integer_or_null("paid_amount_cents")?,
            ),
            ("payment_method", fields.text_or_null("payment_method")?),
            ("paid_at", fields.time_or_null("paid_at")?),
        ],
    ))
}

fn share(order: &Row) -> Share {
    let key = ["merchant_id", "status"].map(|column| into_text(order[column].clone()));
    (
        key.to_vec(),
        order["amount_cents"].as_i64().unwrap_or_default(),
    )
}

/// How a change log shows an order: JSON in which a time has no fraction when it is zero.
fn picture(order: &Row) -> Value {
    let shown = ORDERS
        .columns
        .iter()
        .filter(|(column, _)| !matches!(*column, "merchant_id" | "order_uuid" | "last_position"));
    let cells =
        shown.map(|(column, kind)| ((*column).to_owned(), canonical(&order[*column], *kind)));
    Value::Object(cells.collect::<Map<_, _>>())
}

fn canonical(cell: &Value, kind: Kind) -> Value {
    match cell {
        Value::String(time) if kind == Time => time.replace(".000000Z", "Z").into(),
        other => other.clone(),
    }
}
