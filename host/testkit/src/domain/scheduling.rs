//! The projection `scheduling`: rows, and the load of each worker.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Projection;
use super::events::{Event, Poison};
use super::fields::{Fields, into_text};
use super::ledger::{Ledger, Share};
use super::table::Kind::{Plain, Time};
use super::table::{Layout, Row, Table, row};

static SCHEDULES: Layout = Layout {
    name: "schedules",
    key: &["merchant_id", "order_uuid"],
    columns: &[
        ("merchant_id", Plain),
        ("order_uuid", Plain),
        ("schedule_uuid", Plain),
        ("worker_uuid", Plain),
        ("start_at", Time),
        ("end_at", Time),
        ("status", Plain),
        ("notes", Plain),
        ("inserted_at", Time),
        ("updated_at", Time),
        ("last_position", Plain),
    ],
    zero: None,
};

static LOAD: Layout = Layout {
    name: "worker_load",
    key: &["merchant_id", "worker_uuid", "status"],
    columns: &[
        ("merchant_id", Plain),
        ("worker_uuid", Plain),
        ("status", Plain),
        ("schedules", Plain),
    ],
    zero: Some("schedules"),
};

const STATUS: [&str; 4] = ["planned", "in_service", "done", "cancelled"];

/// Merchant and identifier.
type Key = (String, String);

#[derive(Debug, Default)]
pub(super) struct Scheduling {
    schedules: BTreeMap<Key, Row>,
    load: Ledger,
}

impl Projection for Scheduling {
    fn name(&self) -> &'static str {
        "scheduling"
    }

    fn apply(&mut self, event: &Event) -> Result<(), Poison> {
        let position = event.position;
        self.try_apply(event)
            .map_err(|reason| Poison { position, reason })
    }

    fn tables(&self) -> Vec<Table> {
        let load = self.load.entries().map(|(key, schedules, _)| {
            row([
                ("merchant_id", key[0].as_str().into()),
                ("worker_uuid", key[1].as_str().into()),
                ("status", key[2].as_str().into()),
                ("schedules", schedules),
            ])
        });
        let schedules = self.schedules.values().cloned().collect();
        vec![
            Table {
                layout: &SCHEDULES,
                rows: schedules,
            },
            Table {
                layout: &LOAD,
                rows: load.collect(),
            },
        ]
    }
}

impl Scheduling {
    fn try_apply(&mut self, event: &Event) -> Result<(), String> {
        let Some((key, cells)) = read(event)? else {
            return Ok(());
        };
        let before = self.schedules.get(&key).cloned();
        if before.is_some() == (event.kind == "ScheduleAssignmentCreated") {
            return Ok(());
        }
        let after = (event.kind != "ScheduleDeleted").then(|| {
            let mut after = before.clone().unwrap_or_default();
            after.insert("merchant_id".into(), key.0.as_str().into());
            after.insert("order_uuid".into(), key.1.as_str().into());
            after.extend(
                cells
                    .into_iter()
                    .map(|(column, cell)| (column.to_owned(), cell)),
            );
            after.insert("last_position".into(), event.position.into());
            after
        });
        self.load
            .shift(before.as_ref().map(share), after.as_ref().map(share))?;
        match after {
            Some(after) => self.schedules.insert(key, after),
            None => self.schedules.remove(&key),
        };
        Ok(())
    }
}

type Cells = Vec<(&'static str, Value)>;

fn read(event: &Event) -> Result<Option<(Key, Cells)>, String> {
    let cells: fn(Fields<'_>) -> Result<Cells, String> = match event.kind.as_str() {
        "ScheduleAssignmentCreated" => |fields| {
            let mut cells = assignment(fields)?;
            cells.push(("schedule_uuid", fields.uuid("schedule_uuid")?));
            cells.push(("status", fields.word("status", &STATUS)?));
            cells.push(("inserted_at", fields.time("inserted_at")?));
            Ok(cells)
        },
        "ScheduleAssignmentUpdated" => assignment,
        "ScheduleStatusChanged" => |fields| {
            let status = fields.word("status", &STATUS)?;
            Ok(vec![
                ("status", status),
                ("updated_at", fields.time("updated_at")?),
            ])
        },
        "ScheduleDeleted" => |fields| fields.time("deleted_at").map(|_| Vec::new()),
        _ => return Ok(None),
    };
    let fields = Fields::of(&event.data)?;
    let cells = cells(fields)?;
    let key = (
        fields.merchant()?,
        fields.identifier("order_uuid", Some("order_id"))?,
    );
    Ok(Some((key, cells)))
}

fn assignment(fields: Fields<'_>) -> Result<Cells, String> {
    Ok(vec![
        ("worker_uuid", fields.uuid("assigned_user_uuid")?),
        ("start_at", fields.time("start_at")?),
        ("end_at", fields.time("end_at")?),
        ("notes", fields.text_or_null("notes")?),
        ("updated_at", fields.time("updated_at")?),
    ])
}

fn share(schedule: &Row) -> Share {
    let key = ["merchant_id", "worker_uuid", "status"];
    (
        key.map(|column| into_text(schedule[column].clone()))
            .to_vec(),
        0,
    )
}
