//! What a changed manifest means for rows that are there already.
//!
//! Promises: whatever makes old rows unfit, or left out events that are wanted now, needs a rebuild and is named.
//! Order of tables and columns, versions and further indexes never do.

use std::collections::BTreeSet;

use crate::event_store::event::Subscription;

use super::{Manifest, Table};

/// What differs between the manifest that made the rows and another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Why the new one cannot go on with the old rows; empty when it can.
    pub rebuild: Vec<String>,
    /// Tables whose further indexes differ.
    pub indexes: Vec<String>,
}

impl Difference {
    /// From the manifest that made the rows to another one of the same projection.
    #[must_use]
    pub fn between(before: &Manifest, after: &Manifest) -> Self {
        let mut difference = Self::default();
        for old in &before.tables {
            match after.tables.iter().find(|new| new.name == old.name) {
                None => difference
                    .rebuild
                    .push(format!("the table {} is gone", old.name.as_str())),
                Some(new) => difference.table(old, new),
            }
        }
        for new in &after.tables {
            if !before.tables.iter().any(|old| old.name == new.name) {
                difference
                    .rebuild
                    .push(format!("the table {} is new", new.name.as_str()));
            }
        }
        difference.subscription(&before.subscription, &after.subscription);
        difference
    }

    /// Whether the new one can go on with the old rows.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.rebuild.is_empty()
    }

    fn table(&mut self, old: &Table, new: &Table) {
        let name = old.name.as_str();
        for column in &old.columns {
            let what = match new.columns.iter().find(|other| other.name == column.name) {
                None => "is gone".to_owned(),
                Some(other) if other.column_type != column.column_type => {
                    format!(
                        "is {} instead of {}",
                        other.column_type.sql(),
                        column.column_type.sql()
                    )
                }
                Some(other) if other.nullable != column.nullable && column.nullable => {
                    "may not be null any more".to_owned()
                }
                Some(other) if other.nullable != column.nullable => "may be null now".to_owned(),
                Some(other) if other.default != column.default => "has another default".to_owned(),
                Some(_) => continue,
            };
            self.rebuild
                .push(format!("the column {name}.{} {what}", column.name.as_str()));
        }
        for column in &new.columns {
            if old.column(column.name.as_str()).is_none() {
                self.rebuild
                    .push(format!("the column {name}.{} is new", column.name.as_str()));
            }
        }
        let key = |table: &Table| names(table, &table.primary_key);
        if key(old) != key(new) {
            self.rebuild.push(format!(
                "the primary key of {name} is ({}) instead of ({})",
                key(new).join(", "),
                key(old).join(", ")
            ));
        }
        let indexes = |table: &Table| -> BTreeSet<Vec<String>> {
            table
                .indexes
                .iter()
                .map(|index| names(table, index))
                .collect()
        };
        if indexes(old) != indexes(new) {
            self.indexes.push(name.to_owned());
        }
    }

    /// Events that were not wanted before were passed over, so a wider subscription would leave holes.
    fn subscription(&mut self, old: &Subscription, new: &Subscription) {
        let types = match (old.types.is_empty(), new.types.is_empty()) {
            (true, _) => Vec::new(),
            (false, true) => vec!["every type".to_owned()],
            (false, false) => {
                let known: BTreeSet<&String> = old.types.iter().collect();
                let unknown = new.types.iter().filter(|wanted| !known.contains(wanted));
                unknown.cloned().collect()
            }
        };
        let prefixes = match (
            old.stream_prefixes.is_empty(),
            new.stream_prefixes.is_empty(),
        ) {
            (true, _) => Vec::new(),
            (false, true) => vec!["every stream".to_owned()],
            (false, false) => {
                let covered = |prefix: &String| {
                    old.stream_prefixes
                        .iter()
                        .any(|wide| prefix.starts_with(wide.as_str()))
                };
                let wider = new.stream_prefixes.iter().filter(|prefix| !covered(prefix));
                wider
                    .map(|prefix| format!("streams that begin with {prefix}"))
                    .collect()
            }
        };
        let wanted: Vec<String> = types.into_iter().chain(prefixes).collect();
        if !wanted.is_empty() {
            self.rebuild.push(format!(
                "it wants events that were passed over before: {}",
                wanted.join(", ")
            ));
        }
    }
}

fn names(table: &Table, columns: &[usize]) -> Vec<String> {
    columns
        .iter()
        .map(|&at| table.columns[at].name.as_str().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn manifest(change: impl FnOnce(&mut Value)) -> Manifest {
        let mut form = json!({
            "name": "order", "version": "1", "reads": false,
            "subscription": { "types": ["A", "B"], "stream_prefixes": ["order-"] },
            "tables": [{
                "name": "orders", "primary_key": ["id"], "indexes": [["note"]],
                "columns": [
                    { "name": "id", "type": "uuid" },
                    { "name": "note", "type": "text", "nullable": true },
                    { "name": "count", "type": "bigint", "default": "0" },
                ],
            }],
        });
        change(&mut form);
        serde_json::from_value(form).expect("a manifest")
    }

    fn check(change: impl FnOnce(&mut Value), rebuild: &[&str]) {
        let found = Difference::between(&manifest(|_| {}), &manifest(change)).rebuild;
        assert_eq!(found.len(), rebuild.len(), "{found:?}");
        for (found, part) in found.iter().zip(rebuild) {
            assert!(found.contains(part), "{found}");
        }
    }

    #[test]
    fn what_leaves_rows_right_goes_on() {
        check(|_| {}, &[]);
        check(|form| form["version"] = json!("2"), &[]);
        check(|form| form["reads"] = json!(true), &[]);
        check(|form| form["subscription"]["types"] = json!(["B"]), &[]);
        check(
            |form| form["subscription"]["stream_prefixes"] = json!(["order-eu-", "order-"]),
            &[],
        );
        check(
            |form| {
                form["tables"][0]["columns"]
                    .as_array_mut()
                    .expect("a list")
                    .reverse()
            },
            &[],
        );
    }

    #[test]
    fn further_indexes_go_on_and_are_named() {
        let after = manifest(|form| form["tables"][0]["indexes"] = json!([["count", "note"]]));
        let found = Difference::between(&manifest(|_| {}), &after);
        assert!(found.goes_on());
        assert_eq!(found.indexes, ["orders"]);
    }

    #[test]
    fn what_makes_rows_unfit_needs_a_rebuild() {
        let column = |at: usize, key: &'static str, value: Value| {
            move |form: &mut Value| form["tables"][0]["columns"][at][key] = value
        };
        check(
            column(1, "type", json!("jsonb")),
            &["orders.note is jsonb instead of text"],
        );
        check(column(1, "nullable", json!(false)), &["may not be null"]);
        check(column(2, "nullable", json!(true)), &["may be null"]);
        check(column(2, "default", json!("1")), &["another default"]);
        check(
            column(2, "name", json!("number")),
            &["orders.count is gone", "orders.number is new"],
        );
        check(
            |form| form["tables"][0]["primary_key"] = json!(["id", "count"]),
            &["(id, count) instead of (id)"],
        );
        check(
            |form| form["tables"][0]["name"] = json!("sales"),
            &["orders is gone", "sales is new"],
        );
    }

    #[test]
    fn events_that_were_passed_over_need_a_rebuild() {
        check(
            |form| form["subscription"]["types"] = json!(["A", "C"]),
            &["passed over before: C"],
        );
        check(
            |form| form["subscription"]["types"] = json!([]),
            &["every type"],
        );
        check(
            |form| form["subscription"]["stream_prefixes"] = json!(["o"]),
            &["begin with o"],
        );
        check(
            |form| form["subscription"]["stream_prefixes"] = json!([]),
            &["every stream"],
        );
    }
}
