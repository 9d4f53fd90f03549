//! From what `describe` returned to a [`Manifest`]. Lists every fault, so that an author fixes them in one go.

use std::collections::HashSet;

use thiserror::Error;

use super::{Column, ColumnType, Manifest, Table};
use crate::database::identifier::Identifier;
use crate::event_store::event::Subscription;
use crate::guest::bindings::Description;
use crate::guest::bindings::typed::exports::projector::projection::manifest as contract;
use crate::read_model::check::TableShape;

/// Longest name of a projection; schemas of generations are named after it.
pub const PROJECTION_NAME_BYTES_MAX: usize = 40;
const VERSION_BYTES_MAX: usize = 64;
const TABLES_MAX: usize = 64;
const COLUMNS_MAX: usize = 400;
const INDEXES_MAX: usize = 32;
/// PostgreSQL's own bound.
const INDEX_COLUMNS_MAX: usize = 32;
const WANTED_MAX: usize = 1_000;
const WANTED_BYTES_MAX: usize = 500;
/// Columns that every table has already.
const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"];
/// Faults that are listed.
const FAULTS_MAX: usize = 50;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {what}")]
pub struct ManifestFault {
    /// Where: `name`, `table orders`, `orders.total`.
    pub place: String,
    /// What is wrong, and what is allowed.
    pub what: String,
}

impl Manifest {
    /// Checks what a plugin says of itself.
    ///
    /// # Errors
    /// With every fault, in the order of the description.
    pub fn check(description: &Description) -> Result<Self, Vec<ManifestFault>> {
        let mut faults = Faults(Vec::new());
        name(&description.name, &mut faults);
        text(
            "version",
            &description.version,
            VERSION_BYTES_MAX,
            &mut faults,
        );
        wanted(
            "subscription.types",
            &description.subscription.types,
            &mut faults,
        );
        wanted(
            "subscription.stream-prefixes",
            &description.subscription.stream_prefixes,
            &mut faults,
        );
        let tables = tables(&description.tables, &mut faults);
        if faults.0.is_empty() {
            usable(&tables, &mut faults);
        }
        if faults.0.is_empty() {
            Ok(Self {
                name: description.name.clone(),
                version: description.version.clone(),
                subscription: Subscription {
                    types: description.subscription.types.clone(),
                    stream_prefixes: description.subscription.stream_prefixes.clone(),
                },
                reads: description.reads,
                tables,
            })
        } else {
            Err(faults.0)
        }
    }
}

struct Faults(Vec<ManifestFault>);

impl Faults {
    fn add(&mut self, place: impl Into<String>, what: impl Into<String>) {
        if self.0.len() < FAULTS_MAX {
            self.0.push(ManifestFault {
                place: crate::guest::logging::tidy(&place.into(), 200),
                what: crate::guest::logging::tidy(&what.into(), 400),
            });
        }
    }
}

fn name(name: &str, faults: &mut Faults) {
    let letters = name
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !letters || name.is_empty() || name.len() > PROJECTION_NAME_BYTES_MAX {
        faults.add(
            "name",
            format!(
                "{name:?} is no projection name; use 1 to {PROJECTION_NAME_BYTES_MAX} of `a-z`, `0-9` and `-`"
            ),
        );
    } else if let Err(error) = Identifier::new(format!("{}_g1", name.replace('-', "_"))) {
        faults.add("name", format!("`{name}` cannot name a schema: {error}"));
    }
}

fn text(place: &str, text: &str, bytes_max: usize, faults: &mut Faults) {
    if text.is_empty() {
        faults.add(place, "is empty");
    } else if text.len() > bytes_max {
        faults.add(place, format!("is longer than {bytes_max} bytes"));
    } else if text.chars().any(char::is_control) {
        faults.add(place, "has control characters");
    }
}

fn wanted(place: &str, texts: &[String], faults: &mut Faults) {
    if texts.len() > WANTED_MAX {
        faults.add(place, format!("has more than {WANTED_MAX} entries"));
        return;
    }
    let mut seen = HashSet::new();
    for (at, entry) in texts.iter().enumerate() {
        text(&format!("{place}[{at}]"), entry, WANTED_BYTES_MAX, faults);
        if !seen.insert(entry) {
            faults.add(
                format!("{place}[{at}]"),
                format!("{entry:?} stands there twice"),
            );
        }
    }
}

/// What the checks of writes refuse of a table would keep its projection from ever beginning.
fn usable(tables: &[Table], faults: &mut Faults) {
    for table in tables {
        if let Err(why) = TableShape::new(table.clone()) {
            faults.add("tables", why);
        }
    }
}

fn tables(tables: &[contract::Table], faults: &mut Faults) -> Vec<Table> {
    if tables.len() > TABLES_MAX {
        faults.add(
            "tables",
            format!("are {}; at most {TABLES_MAX} are allowed", tables.len()),
        );
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut checked = Vec::new();
    for declared in tables {
        let place = format!("table {}", declared.name);
        if !seen.insert(&declared.name) {
            faults.add(&place, "is declared twice");
        }
        match Identifier::new(&declared.name) {
            Ok(name) => checked.extend(table(name, declared, faults)),
            Err(error) => faults.add(place, error.to_string()),
        }
    }
    checked
}

fn table(name: Identifier, declared: &contract::Table, faults: &mut Faults) -> Option<Table> {
    let place = format!("table {name}");
    if declared.columns.len() > COLUMNS_MAX {
        faults.add(
            place,
            format!(
                "has {} columns; at most {COLUMNS_MAX} are allowed",
                declared.columns.len()
            ),
        );
        return None;
    }
    let columns = columns(&name, &declared.columns, faults);
    // Places are those of the description, so that one bad column does not make others look unknown.
    let places = |what: &str, names: &[String], faults: &mut Faults| {
        column_places(
            &format!("{place}, {what}"),
            &declared.columns,
            names,
            faults,
        )
    };
    if declared.primary_key.is_empty() {
        faults.add(&place, "has no primary key");
    }
    let primary_key = places("primary key", &declared.primary_key, faults);
    for column in primary_key
        .iter()
        .filter_map(|at| declared.columns.get(*at))
    {
        if column.nullable {
            faults.add(
                format!("{name}.{}", column.name),
                "is part of the primary key and cannot be nullable",
            );
        }
        if column.column_type == ColumnType::Jsonb.sql() {
            faults.add(
                format!("{name}.{}", column.name),
                "is part of the primary key and cannot be jsonb, which says the same in many ways; use text",
            );
        }
    }
    if declared.indexes.len() > INDEXES_MAX {
        faults.add(
            &place,
            format!(
                "has {} indexes; at most {INDEXES_MAX} are allowed",
                declared.indexes.len()
            ),
        );
        return None;
    }
    let mut indexes = Vec::new();
    for (at, index) in declared.indexes.iter().enumerate() {
        if index.columns.is_empty() {
            faults.add(format!("{place}, index {at}"), "has no columns");
        }
        let index = places(&format!("index {at}"), &index.columns, faults);
        if indexes.contains(&index) {
            faults.add(format!("{place}, index {at}"), "is the same as one before");
        }
        indexes.push(index);
    }
    Some(Table {
        name,
        columns,
        primary_key,
        indexes,
    })
}

fn columns(table: &Identifier, declared: &[contract::Column], faults: &mut Faults) -> Vec<Column> {
    let mut seen = HashSet::new();
    let mut checked = Vec::new();
    for column in declared {
        let place = format!("{table}.{}", column.name);
        if !seen.insert(&column.name) {
            faults.add(&place, "is declared twice");
        }
        let name = Identifier::new(&column.name)
            .map_err(|error| faults.add(&place, error.to_string()))
            .ok();
        if SYSTEM_COLUMNS.contains(&column.name.as_str()) {
            faults.add(
                &place,
                "is the name of a system column, which every table of PostgreSQL has; take another one",
            );
        }
        let column_type = ColumnType::from_sql(&column.column_type);
        match (column_type, &column.default_value) {
            (None, _) => faults.add(
                &place,
                format!(
                    "has the unknown type `{}`; use {}",
                    column.column_type,
                    ColumnType::ALL.map(ColumnType::sql).join(", ")
                ),
            ),
            (Some(column_type), Some(default)) if !fits(column_type, default) => faults.add(
                &place,
                format!(
                    "has the default {default:?}, which is no {}",
                    column_type.sql()
                ),
            ),
            _ => {}
        }
        if let (Some(name), Some(column_type)) = (name, column_type) {
            checked.push(Column {
                name,
                column_type,
                nullable: column.nullable,
                default: column.default_value.clone(),
            });
        }
    }
    checked
}

fn column_places(
    place: &str,
    columns: &[contract::Column],
    names: &[String],
    faults: &mut Faults,
) -> Vec<usize> {
    if names.len() > INDEX_COLUMNS_MAX {
        faults.add(
            place,
            format!(
                "has {} columns; at most {INDEX_COLUMNS_MAX} are allowed",
                names.len()
            ),
        );
        return Vec::new();
    }
    let mut places = Vec::new();
    for name in names {
        match columns.iter().position(|column| column.name == *name) {
            None => faults.add(
                place,
                format!("names `{name}`, which is no column of the table"),
            ),
            Some(at) if places.contains(&at) => {
                faults.add(place, format!("names `{name}` twice"));
            }
            Some(at) => places.push(at),
        }
    }
    places
}

/// A first look; what passes is checked again by the database when the table is created.
fn fits(column_type: ColumnType, default: &str) -> bool {
    if default.contains('\0') {
        return false;
    }
    match column_type {
        ColumnType::Text | ColumnType::Timestamptz | ColumnType::Date => true,
        ColumnType::BigInt => default.parse::<i64>().is_ok(),
        ColumnType::Double => default.parse::<f64>().is_ok(),
        ColumnType::Boolean => matches!(default, "true" | "false"),
        ColumnType::Numeric => default.parse::<bigdecimal::BigDecimal>().is_ok(),
        ColumnType::Uuid => uuid::Uuid::parse_str(default).is_ok(),
        ColumnType::Jsonb => serde_json::from_str::<serde::de::IgnoredAny>(default).is_ok(),
        ColumnType::Bytea => default.starts_with("\\x"),
        ColumnType::TextArray => default.starts_with('{') && default.ends_with('}'),
    }
}

#[cfg(test)]
mod tests;
