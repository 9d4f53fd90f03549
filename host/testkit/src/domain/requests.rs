//! The projection `service-request`: rows, and the funnel.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Projection;
use super::events::{Event, Poison};
use super::fields::{Fields, into_text};
use super::ledger::{Ledger, Share};
use super::table::Kind::{Plain, Time};
use super::table::{Layout, Row, Table, row};

static REQUESTS: Layout = Layout {
    name: "service_requests",
    key: &["merchant_id", "request_uuid"],
    columns: &[
        ("merchant_id", Plain),
        ("request_uuid", Plain),
        ("customer_uuid", Plain),
        ("creator_uuid", Plain),
        ("service_catalog_uuid", Plain),
        ("service_content", Plain),
        ("appointment_start_at", Time),
        ("appointment_end_at", Time),
        ("status", Plain),
        ("source", Plain),
        ("notes", Plain),
        ("inserted_at", Time),
        ("updated_at", Time),
        ("last_position", Plain),
    ],
    zero: None,
};

static FUNNEL: Layout = Layout {
    name: "request_funnel",
    key: &["merchant_id", "status"],
    columns: &[
        ("merchant_id", Plain),
        ("status", Plain),
        ("requests", Plain),
    ],
    zero: Some("requests"),
};

const STATUS: [&str; 4] = ["new", "confirmed", "converted", "cancelled"];

/// Merchant and identifier.
type Key = (String, String);

#[derive(Debug, Default)]
pub(super) struct Requests {
    requests: BTreeMap<Key, Row>,
    funnel: Ledger,
}

impl Projection for Requests {
    fn name(&self) -> &'static str {
        "service-request"
    }

    fn apply(&mut self, event: &Event) -> Result<(), Poison> {
        let position = event.position;
        self.try_apply(event)
            .map_err(|reason| Poison { position, reason })
    }

    fn tables(&self) -> Vec<Table> {
        let funnel = self.funnel.entries().map(|(key, requests, _)| {
            row([
                ("merchant_id", key[0].as_str().into()),
                ("status", key[1].as_str().into()),
                ("requests", requests),
            ])
        });
        let requests = self.requests.values().cloned().collect();
        vec![
            Table {
                layout: &REQUESTS,
                rows: requests,
            },
            Table {
                layout: &FUNNEL,
                rows: funnel.collect(),
            },
        ]
    }
}

impl Requests {
    fn try_apply(&mut self, event: &Event) -> Result<(), String> {
        let Some((key, cells)) = read(event)? else {
            return Ok(());
        };
        let before = self.requests.get(&key).cloned();
        if before.is_some() == (event.kind == "ServiceRequestCreated") {
            return Ok(());
        }
        let mut after = before.clone().unwrap_or_default();
        after.insert("merchant_id".into(), key.0.as_str().into());
        after.insert("request_uuid".into(), key.1.as_str().into());
        after.extend(
            cells
                .into_iter()
                .map(|(column, cell)| (column.to_owned(), cell)),
        );
        after.insert("last_position".into(), event.position.into());
        self.funnel
            .shift(before.as_ref().map(share), Some(share(&after)))?;
        self.requests.insert(key, after);
        Ok(())
    }
}

type Cells = Vec<(&'static str, Value)>;

fn read(event: &Event) -> Result<Option<(Key, Cells)>, String> {
    let cells: fn(Fields<'_>) -> Result<Cells, String> = match event.kind.as_str() {
        "ServiceRequestCreated" => |fields| {
            let mut cells = details(fields)?;
            cells.push(("customer_uuid", fields.uuid("customer_uuid")?));
            cells.push(("creator_uuid", fields.uuid("creator_uuid")?));
            cells.push(("status", fields.word("status", &STATUS)?));
            cells.push(("source", fields.text("source")?));
            cells.push(("inserted_at", fields.time("inserted_at")?));
            Ok(cells)
        },
        "ServiceRequestDetailsUpdated" => details,
        "ServiceRequestStatusChanged" => {
            |fields| Ok(vec![("status", fields.word("status", &STATUS)?)])
        }
        _ => return Ok(None),
    };
    let fields = Fields::of(&event.data)?;
    let mut cells = cells(fields)?;
    cells.push(("updated_at", fields.time("updated_at")?));
    let key = (fields.merchant()?, fields.identifier("request_uuid", None)?);
    Ok(Some((key, cells)))
}

fn details(fields: Fields<'_>) -> Result<Cells, String> {
    Ok(vec![
        (
            "service_catalog_uuid",
            fields.uuid_or_null("service_catalog_uuid")?,
        ),
        ("service_content", fields.text("service_content")?),
        (
            "appointment_start_at",
            fields.time_or_null("appointment_start_at")?,
        ),
        (
            "appointment_end_at",
            fields.time_or_null("appointment_end_at")?,
        ),
        ("notes", fields.text_or_null("notes")?),
    ])
}

fn share(request: &Row) -> Share {
    let key = ["merchant_id", "status"];
    (
        key.map(|column| into_text(request[column].clone()))
            .to_vec(),
        0,
    )
}
