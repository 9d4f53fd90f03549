//! The statements' text. Names are checked identifiers; values are always bound.

use std::fmt::Write as _;

use crate::database::identifier::Identifier;
use crate::plugin::manifest::ColumnType;

use super::super::bind::wire;
use super::super::check::TableShape;
use super::super::lookup::Source;

/// How a column is changed by an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Set,
    Add,
    /// All sums are far from the limits of 64 bits; of numerics, the end is the farthest that they come.
    AddSmall,
    /// The same, where a row that is near them may fail the statement: whoever runs it does it again in another way.
    AddQuick,
}

/// Marks our own overflow message inside the database's, which names no column by itself.
const OVERFLOW_MARK: &str = "overflow of column ";

/// The column and what happened to it, when an `add` left its range.
pub(super) fn overflow(message: &str) -> Option<(String, String)> {
    let (_, rest) = message.split_once(OVERFLOW_MARK)?;
    let (column, amounts) = rest.trim_end_matches('"').split_once(": ")?;
    let what = format!("the sum of {amounts} does not fit bigint");
    Some((column.to_owned(), what))
}

/// Two numbers within this bound add up without an overflow.
pub(super) const SMALL_MAX: i64 = 1 << 61;

/// Where a statement stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    /// So many parameters stand before its own.
    pub(super) parameters: usize,
    /// A condition that must hold for it to do anything: it is one of several in a larger statement.
    pub(super) gate: Option<&'static str>,
    /// How many rows it is given.
    pub(super) rows: Few,
}

/// Whether a statement is given so few rows that it should be planned for them: otherwise the server expects ten, and
/// reads the whole of a small table for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Few {
    /// This many at most.
    Rows(usize),
    /// No.
    #[default]
    Many,
}

impl Few {
    /// Rounded up, since each number is a statement of its own.
    pub(super) fn of(rows: usize) -> Self {
        let bounds = [1, 4, 16];
        bounds
            .into_iter()
            .find(|bound| rows <= *bound)
            .map_or(Self::Many, Self::Rows)
    }
}

impl Place {
    /// The gate after other conditions.
    fn and(self) -> String {
        self.gate
            .map_or_else(String::new, |gate| format!(" AND {gate}"))
    }
}

/// What an insert does about a row that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflict {
    /// Leaves it.
    Keep,
    /// Puts its own in its place.
    Replace,
    /// Fails.
    Refuse,
}

/// Numbers parameters and collects the arrays of an `unnest`.
struct Unnest {
    rows: Few,
    parameters: usize,
    arrays: Vec<String>,
    names: Vec<String>,
}

impl Unnest {
    fn new(place: Place) -> Self {
        Self {
            rows: place.rows,
            parameters: place.parameters,
            arrays: Vec::new(),
            names: Vec::new(),
        }
    }

    fn array(&mut self, array_type: &str, name: String) {
        self.parameters += 1;
        self.arrays
            .push(format!("${}::{array_type}", self.parameters));
        self.names.push(name);
    }

    fn column(&mut self, shape: &TableShape, column: usize, name: String) {
        self.array(wire(shape.table.columns[column].column_type).0, name);
    }

    fn keys(&mut self, shape: &TableShape) {
        for (part, &column) in shape.table.primary_key.iter().enumerate() {
            self.column(shape, column, format!("k{part}"));
        }
    }

    fn from(&self, ordinality: bool) -> String {
        let (with, ord) = if ordinality {
            (" WITH ORDINALITY", ", ord")
        } else {
            ("", "")
        };
        let names = self.names.join(", ");
        let arrays = self.arrays.join(", ");
        match self.rows {
            // No rows to make of it: the first of each array stands where it is used.
            Few::Rows(1) => {
                let first = self.arrays.iter().map(|array| format!("({array})[1]"));
                let first = first.collect::<Vec<_>>().join(", ");
                let one = if ordinality { ", 1::bigint" } else { "" };
                format!("(SELECT {first}{one}) AS u({names}{ord})")
            }
            Few::Rows(rows) => {
                format!("(SELECT * FROM unnest({arrays}){with} LIMIT {rows}) AS u({names}{ord})")
            }
            Few::Many => format!("unnest({arrays}){with} AS u({names}{ord})"),
        }
    }
}

fn table(schema: &Identifier, shape: &TableShape) -> String {
    format!("{}.{}", schema.quoted(), shape.table.name.quoted())
}

fn quoted(shape: &TableShape, column: usize) -> String {
    shape.table.columns[column].name.quoted()
}

fn cast(shape: &TableShape, column: usize) -> &'static str {
    wire(shape.table.columns[column].column_type).1
}

fn on_key(shape: &TableShape) -> String {
    let parts = shape.table.primary_key.iter().enumerate();
    parts
        .map(|(part, &column)| {
            format!(
                "t.{} = u.k{part}{}",
                quoted(shape, column),
                cast(shape, column)
            )
        })
        .collect::<Vec<_>>()
        .join(" AND ")
}

/// For each key, in order, whether its row is there.
pub(super) fn present(schema: &Identifier, shape: &TableShape) -> String {
    let mut unnest = Unnest::new(Place::default());
    unnest.keys(shape);
    format!(
        "SELECT EXISTS (SELECT FROM {} t WHERE {}) FROM {} ORDER BY u.ord",
        table(schema, shape),
        on_key(shape),
        unnest.from(true)
    )
}

/// The rows of these keys: the key's place, the checkpoint, whether there is a row, and its columns.
pub(in super::super) fn select(source: &Source, shape: &TableShape, keys: usize) -> String {
    let mut unnest = Unnest::new(Place {
        rows: Few::of(keys),
        ..Place::default()
    });
    unnest.keys(shape);
    let columns = shape.table.columns.iter().map(|column| {
        let as_text = matches!(
            column.column_type,
            ColumnType::Numeric | ColumnType::Date | ColumnType::Jsonb
        );
        format!(
            "t.{}{}",
            column.name.quoted(),
            if as_text { "::text" } else { "" }
        )
    });
    let columns: Vec<_> = columns.collect();
    format!(
        "SELECT u.ord, (SELECT position FROM {}.checkpoints WHERE projection = ${} AND generation = ${}), \
         t.{} IS NOT NULL, {} FROM {} LEFT JOIN {} t ON {}",
        source.control.quoted(),
        unnest.parameters + 1,
        unnest.parameters + 2,
        quoted(shape, shape.table.primary_key[0]),
        columns.join(", "),
        unnest.from(true),
        table(&source.schema, shape),
        on_key(shape)
    )
}

pub(super) fn delete(schema: &Identifier, shape: &TableShape, place: Place) -> String {
    let mut unnest = Unnest::new(place);
    unnest.keys(shape);
    format!(
        "DELETE FROM {} t USING {} WHERE {}{}",
        table(schema, shape),
        unnest.from(false),
        on_key(shape),
        place.and()
    )
}

/// With `but_for`, only the rows whose places are not among those of this query.
pub(super) fn insert(
    schema: &Identifier,
    shape: &TableShape,
    conflict: Conflict,
    place: Place,
    but_for: Option<&str>,
) -> String {
    let mut unnest = Unnest::new(place);
    let all = 0..shape.table.columns.len();
    for column in all.clone() {
        unnest.column(shape, column, format!("c{column}"));
    }
    let names: Vec<_> = all.clone().map(|column| quoted(shape, column)).collect();
    let values: Vec<_> = all
        .clone()
        .map(|column| format!("u.c{column}{}", cast(shape, column)))
        .collect();
    let key: Vec<_> = shape
        .table
        .primary_key
        .iter()
        .map(|&column| quoted(shape, column))
        .collect();
    let set: Vec<_> = all
        .filter(|&column| !shape.in_key[column])
        .map(|column| format!("{0} = EXCLUDED.{0}", quoted(shape, column)))
        .collect();
    let conflict = match conflict {
        Conflict::Refuse => String::new(),
        Conflict::Replace if !set.is_empty() => format!(
            " ON CONFLICT ({}) DO UPDATE SET {}",
            key.join(", "),
            set.join(", ")
        ),
        Conflict::Keep | Conflict::Replace => {
            format!(" ON CONFLICT ({}) DO NOTHING", key.join(", "))
        }
    };
    let others = but_for.map(|query| format!("u.ord NOT IN (SELECT ord FROM {query})"));
    let conditions: Vec<&str> = place.gate.into_iter().chain(others.as_deref()).collect();
    let filter = match conditions.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", conditions.join(" AND ")),
    };
    format!(
        "INSERT INTO {} AS t ({}) SELECT {} FROM {}{filter}{conflict}",
        table(schema, shape),
        names.join(", "),
        values.join(", "),
        unnest.from(but_for.is_some()),
    )
}

/// With `returning`, the places of the keys whose rows were there. With `masked`, each row says which of the columns
/// it changes: bit n for the nth.
pub(super) fn update(
    schema: &Identifier,
    shape: &TableShape,
    columns: &[(usize, Kind)],
    returning: bool,
    masked: bool,
    place: Place,
) -> String {
    let mut unnest = Unnest::new(place);
    unnest.keys(shape);
    if masked {
        unnest.array("bigint[]", "mask".to_owned());
    }
    let mut set = Vec::with_capacity(columns.len());
    for (place, &(column, kind)) in columns.iter().enumerate() {
        let name = quoted(shape, column);
        let value = match kind {
            Kind::Set => {
                unnest.column(shape, column, format!("c{column}"));
                format!("u.c{column}{}", cast(shape, column))
            }
            Kind::Add | Kind::AddSmall | Kind::AddQuick => add(&mut unnest, shape, column, kind),
        };
        set.push(if masked {
            let bit = 1_i64 << place;
            format!("{name} = CASE WHEN u.mask & {bit} <> 0 THEN {value} ELSE t.{name} END")
        } else {
            format!("{name} = {value}")
        });
    }
    let mut statement = format!(
        "UPDATE {} t SET {} FROM {} WHERE {}{}",
        table(schema, shape),
        set.join(", "),
        unnest.from(returning),
        on_key(shape),
        place.and()
    );
    if returning {
        let _ = write!(statement, " RETURNING u.ord");
    }
    statement
}

/// The sum of one column. A bigint near its limits is added as numeric, so that the range is judged here and the
/// message can name the column: the database's own "bigint out of range" does not.
fn add(unnest: &mut Unnest, shape: &TableShape, column: usize, kind: Kind) -> String {
    let name = quoted(shape, column);
    match shape.table.columns[column].column_type {
        ColumnType::BigInt => {
            let base = format!("coalesce(t.{name}, 0)");
            let small = format!(
                "CASE WHEN {base} BETWEEN -{SMALL_MAX} AND {SMALL_MAX} THEN {base} + u.sum{column}"
            );
            if kind == Kind::AddQuick {
                unnest.array("bigint[]", format!("sum{column}"));
                return format!("{small} ELSE t.{name} / 0 END");
            }
            let array_type = if kind == Kind::AddSmall {
                "bigint[]"
            } else {
                "text[]"
            };
            for part in ["sum", "low", "high"] {
                unnest.array(array_type, format!("{part}{column}"));
            }
            let exact = format!(
                "CASE WHEN {base}::numeric + u.low{column}::numeric >= -9223372036854775808 \
                 AND {base}::numeric + u.high{column}::numeric <= 9223372036854775807 \
                 THEN ({base}::numeric + u.sum{column}::numeric)::bigint \
                 ELSE ('{OVERFLOW_MARK}{bare}: ' || {base}::text || ' and the amounts ' || u.low{column}::text || ' to ' || u.high{column}::text)::bigint END",
                bare = shape.table.columns[column].name,
            );
            if kind == Kind::AddSmall {
                format!("{small} ELSE {exact} END")
            } else {
                exact
            }
        }
        ColumnType::Numeric => {
            unnest.array("text[]", format!("sum{column}"));
            let base = format!("coalesce(t.{name}, 0)");
            let end = format!("{base} + u.sum{column}::numeric");
            if kind != Kind::Add {
                return end;
            }
            // A running sum that does not fit fails here, as it would in a batch of its own.
            for part in ["low", "high"] {
                unnest.array("text[]", format!("{part}{column}"));
            }
            format!(
                "CASE WHEN {base} + u.low{column}::numeric IS NOT NULL AND {base} + u.high{column}::numeric IS NOT NULL \
                 THEN {end} END"
            )
        }
        _ => {
            unnest.array("double precision[]", format!("sum{column}"));
            format!("coalesce(t.{name}, 0) + u.sum{column}")
        }
    }
}

pub(super) fn remove_where(schema: &Identifier, shape: &TableShape, columns: &[usize]) -> String {
    let mut unnest = Unnest::new(Place::default());
    let mut on = Vec::with_capacity(columns.len());
    for &column in columns {
        unnest.column(shape, column, format!("c{column}"));
        on.push(format!(
            "t.{} IS NOT DISTINCT FROM u.c{column}{}",
            quoted(shape, column),
            cast(shape, column)
        ));
    }
    format!(
        "DELETE FROM {} t USING {} WHERE {}",
        table(schema, shape),
        unnest.from(false),
        on.join(" AND ")
    )
}
