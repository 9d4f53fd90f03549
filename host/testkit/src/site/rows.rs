//! Every row of every table against the domain told a second time, at any moment.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Site;
use crate::{
    domain::{Event, PROJECTIONS, Row, compare, fold, projection},
    history::{COUNTS, SEEN, miscounted},
    server::psql,
};

/// Derived tables against a `group by` over what they are derived from: rows that differ.
const DERIVED: [(&str, &str); 3] = [
    (
        "order_totals",
        "select count(*) from (select merchant_id, status, count(*) n, sum(amount_cents) a from read_model.orders group by 1, 2) g \
         full join (select * from read_model.order_totals where orders <> 0 or amount_cents <> 0) t using (merchant_id, status) \
         where (g.n, g.a) is distinct from (t.orders, t.amount_cents)",
    ),
    (
        "worker_load",
        "select count(*) from (select merchant_id, worker_uuid, status, count(*) n from read_model.schedules group by 1, 2, 3) g \
         full join (select * from read_model.worker_load where schedules <> 0) t using (merchant_id, worker_uuid, status) \
         where g.n is distinct from t.schedules",
    ),
    (
        "request_funnel",
        "select count(*) from (select merchant_id, status, count(*) n from read_model.service_requests group by 1, 2) g \
         full join (select * from read_model.request_funnel where requests <> 0) t using (merchant_id, status) \
         where g.n is distinct from t.requests",
    ),
];

/// A consistent picture.
#[derive(Default)]
struct Picture {
    positions: BTreeMap<String, i64>,
    /// Positions that a projection has passed without applying the event.
    buried: BTreeMap<String, BTreeSet<i64>>,
    tables: BTreeMap<String, Vec<Row>>,
}

impl Site {
    /// At this moment: each projection's tables hold what the events up to its checkpoint make of them, without those
    /// in its dead letters, and derived tables equal a `group by`.
    pub fn rows_are_right(&self) {
        if let Err(difference) = self.check_rows() {
            self.fail(&difference);
        }
    }

    /// The same, as an answer.
    ///
    /// # Errors
    /// The first difference.
    pub fn check_rows(&self) -> Result<(), String> {
        for (table, sql) in DERIVED {
            let wrong = self.model(sql);
            if wrong != "0" {
                return Err(format!("{wrong} rows of {table} differ from a group by"));
            }
        }
        let picture = self.picture();
        let all = self.events();
        for name in PROJECTIONS {
            let position = picture.positions.get(name).copied().unwrap_or_default();
            let buried = picture.buried.get(name).cloned().unwrap_or_default();
            let applied = all.iter().filter(|event| !buried.contains(&event.position));
            let events: Vec<Event> = applied.cloned().collect();
            let expected =
                fold(name, &events, position).map_err(|poison| format!("{name}: {poison:?}"))?;
            for table in &expected {
                let found = picture
                    .tables
                    .get(table.layout.name)
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                compare(table, found)
                    .map_err(|difference| format!("{name} at position {position}: {difference}"))?;
            }
        }
        // Where the guest that counts runs, it has counted each event once.
        if let Some(position) = picture.positions.get(COUNTS) {
            let rows = picture
                .tables
                .get(SEEN)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let seen = rows.iter().map(|row| {
                let key = row["key"].as_str().unwrap_or_default();
                (key.to_owned(), row["seen"].as_i64().unwrap_or_default())
            });
            let wrong = miscounted(&seen.collect(), &self.stored(), *position);
            if let Some(first) = wrong.first() {
                return Err(format!("{first} ({} differ)", wrong.len()));
            }
        }
        Ok(())
    }

    /// All of that, and every projection stands at the head.
    pub fn all_is_right_at_the_head(&self) {
        self.wait();
        let head = self.head();
        let positions = self.picture().positions;
        for name in PROJECTIONS {
            if positions.get(name) != Some(&head) {
                self.fail(&format!(
                    "{name} does not stand at the head {head}: {positions:?}"
                ));
            }
        }
        self.rows_are_right();
    }

    /// Waits until every projection has its tables and its checkpoint.
    pub fn begun(&self) {
        self.eventually("every projection has begun", || {
            let begun = self.model("select count(*) from projector.checkpoints");
            (begun.parse::<usize>().unwrap_or(0) >= PROJECTIONS.len()).then_some(())
        });
    }

    /// The highest position.
    pub fn head(&self) -> i64 {
        self.store("select coalesce(max(position), 0) from event_store.events")
            .parse()
            .unwrap_or_default()
    }

    /// A projection's checkpoint; 0 before it has one.
    pub fn position(&self, name: &str) -> i64 {
        let sql = format!("select position from projector.checkpoints where projection = '{name}'");
        self.model(&sql).parse().unwrap_or_default()
    }

    /// Every event.
    pub fn events(&self) -> Vec<Event> {
        let lines = self.store(
            "select json_build_object('position', position, 'kind', type, 'data', data) from event_store.events order by position",
        );
        let event = |line: &str| {
            let mut row: Value = serde_json::from_str(line).expect("the server writes JSON");
            Event {
                position: row["position"].as_i64().unwrap_or_default(),
                kind: row["kind"].as_str().unwrap_or_default().to_owned(),
                data: row["data"].take(),
            }
        };
        lines.lines().map(event).collect()
    }

    fn picture(&self) -> Picture {
        let mut script = String::from(
            "begin isolation level repeatable read;\n\
             select json_build_object('projection', projection, 'position', position::text) from projector.checkpoints;\n\
             select json_build_object('projection', projection, 'buried', position::text) from projector.dead_letters \
             where resolution is distinct from 'retried';\n",
        );
        for name in PROJECTIONS {
            for table in projection(name).tables() {
                script += &format!(
                    "\\echo ={}\n{};\n",
                    table.layout.name,
                    table.layout.select("read_model")
                );
            }
        }
        script += &format!(
            "select to_regclass('read_model.{SEEN}') is not null as counts \\gset\n\\if :counts\n\\echo ={SEEN}\n\
             select json_build_object('key', key, 'seen', seen) from read_model.{SEEN};\n\\endif\n"
        );
        let answer = psql(&self.psql, &self.model, &script)
            .unwrap_or_else(|error| self.fail(&error.to_string()));
        let mut picture = Picture::default();
        let mut table = None;
        for line in answer.lines() {
            if let Some(name) = line.strip_prefix('=') {
                table = Some(picture.tables.entry(name.to_owned()).or_default());
                continue;
            }
            let row: Row = serde_json::from_str(line).expect("the server writes JSON");
            match &mut table {
                Some(rows) => rows.push(row),
                None => {
                    let name = row["projection"].as_str().unwrap_or_default().to_owned();
                    let number = |column: &str| row.get(column)?.as_str()?.parse().ok();
                    if let Some(position) = number("buried") {
                        picture.buried.entry(name).or_default().insert(position);
                    } else {
                        picture
                            .positions
                            .insert(name, number("position").unwrap_or_default());
                    }
                }
            }
        }
        picture
    }
}
