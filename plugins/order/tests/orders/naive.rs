//! The rules once more, written as plainly as possible over JSON values and without the SDK: what the projection is
//! compared with.

use std::collections::BTreeMap;

use projection_testing::{lower, merchant, rows, time};
use projector_sdk::Event;
use projector_sdk::testing::Tables;
use serde_json::{Map, Value, json};

type Columns = Map<String, Value>;

/// The columns of an order beside its key and its position.
const COLUMNS: [(&str, &str); 17] = [
    ("request_uuid", "uuid"),
    ("customer_uuid", "uuid"),
    ("status", "text"),
    ("settlement_status", "text"),
    ("amount_cents", "int"),
    ("paid_amount_cents", "int"),
    ("payment_method", "text"),
    ("scheduled_start_at", "time"),
    ("scheduled_end_at", "time"),
    ("completed_at", "time"),
    ("paid_at", "time"),
    ("cancellation_reason", "text"),
    ("notes", "text"),
    ("dispatch_note", "text"),
    ("settlement_note", "text"),
    ("inserted_at", "time"),
    ("updated_at", "time"),
];

/// All rows after some events.
#[derive(Default)]
pub struct Fold {
    orders: BTreeMap<(String, String), (Columns, u64)>,
    logs: Vec<Value>,
}

impl Fold {
    pub fn of(events: &[Event]) -> Self {
        let mut fold = Self::default();
        let mut position = 0;
        for event in events {
            position = event.position.max(position + 1);
            let data: Value = serde_json::from_str(&event.data).expect("the tests write JSON");
            fold.apply(&event.event_type, &data, position);
        }
        fold
    }

    fn apply(&mut self, event_type: &str, data: &Value, position: u64) {
        let (action, changed): (_, &[&str]) = match event_type {
            "OrderCreated" => ("created", &[]),
            "OrderDetailsUpdated" => (
                "details_updated",
                &["customer_uuid", "amount_cents", "notes"],
            ),
            "OrderStatusChanged" => ("status_changed", &["status", "completed_at"]),
            "OrderCancelled" => ("cancelled", &["cancellation_reason"]),
            "OrderAssignmentUpdated" => (
                "assignment_updated",
                &["scheduled_start_at", "scheduled_end_at", "dispatch_note"],
            ),
            "OrderSettlementUpdated" => (
                "settlement_updated",
                &[
                    "settlement_status",
                    "settlement_note",
                    "paid_amount_cents",
                    "payment_method",
                    "paid_at",
                ],
            ),
            _ => return,
        };
        let key = (merchant(data), lower(&data["order_uuid"]));
        let before = self.orders.get(&key).map(|(columns, _)| columns.clone());
        let mut after = before.clone().unwrap_or_default();
        if action == "created" {
            if before.is_some() {
                return;
            }
            for (name, kind) in COLUMNS {
                let field = if name == "request_uuid" {
                    "request_id"
                } else {
                    name
                };
                after.insert(name.to_owned(), value(kind, &data[field]));
            }
        } else {
            if before.is_none() {
                return;
            }
            for (name, kind) in COLUMNS {
                if changed.contains(&name) || name == "updated_at" {
                    after.insert(name.to_owned(), value(kind, &data[name]));
                }
            }
        }
        if action == "cancelled" {
            after.insert("status".to_owned(), json!("cancelled"));
            after.insert("completed_at".to_owned(), Value::Null);
        }
        let at = if action == "created" {
            "inserted_at"
        } else {
            "updated_at"
        };
        self.logs.push(json!({
            "merchant_id": key.0,
            "order_uuid": key.1,
            "position": position,
            "action": action,
            "operator_uuid": value("uuid", &data["operator_uuid"]),
            "before": before,
            "after": after,
            "changed_at": value("time", &data[at]),
        }));
        self.orders.insert(key, (after, position));
    }

    fn totals(&self) -> BTreeMap<(String, String), (i64, i128)> {
        let mut totals = BTreeMap::new();
        for ((merchant, _), (columns, _)) in &self.orders {
            let status = columns["status"].as_str().unwrap_or_default().to_owned();
            let total = totals.entry((merchant.clone(), status)).or_insert((0, 0));
            total.0 += 1;
            total.1 += i128::from(columns["amount_cents"].as_i64().unwrap_or_default());
        }
        totals
    }

    pub fn assert_equals(&self, tables: &Tables) {
        let orders = self
            .orders
            .iter()
            .map(|((merchant, order), (columns, position))| {
                let mut row = columns.clone();
                row.insert("merchant_id".to_owned(), json!(merchant));
                row.insert("order_uuid".to_owned(), json!(order));
                row.insert("last_position".to_owned(), json!(position));
                Value::Object(row)
            });
        assert_eq!(rows(tables, "orders"), orders.collect::<Vec<_>>());

        let mut logs = self.logs.clone();
        logs.sort_by_key(|log| {
            let text = |name: &str| log[name].as_str().unwrap_or_default().to_owned();
            (
                text("merchant_id"),
                text("order_uuid"),
                log["position"].as_u64(),
            )
        });
        assert_eq!(rows(tables, "order_change_logs"), logs);

        let totals = rows(tables, "order_totals")
            .into_iter()
            .filter(|row| row["orders"] != 0)
            .map(|row| {
                let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
                let number = |name: &str| row[name].as_i64().expect("a total is a whole number");
                let total = (number("orders"), i128::from(number("amount_cents")));
                ((text("merchant_id"), text("status")), total)
            });
        assert_eq!(totals.collect::<BTreeMap<_, _>>(), self.totals());
    }
}

fn value(kind: &str, value: &Value) -> Value {
    match (kind, value) {
        (_, Value::Null) => Value::Null,
        ("uuid", value) => json!(lower(value)),
        ("int", value) => json!(
            value
                .as_i64()
                .unwrap_or_else(|| value.as_f64().unwrap_or_default() as i64)
        ),
        ("time", value) => json!(time(value)),
        (_, value) => value.clone(),
    }
}
