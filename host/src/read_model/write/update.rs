//! Updates of present rows: one statement for all rows of a table where that is possible, whatever columns each of
//! them changes.

use std::collections::BTreeMap;

use bigdecimal::BigDecimal;
use sqlx::postgres::PgArguments;
use sqlx::{Arguments as _, AssertSqlSafe, Row as _};

use crate::plugin::manifest::ColumnType;
use crate::read_model::bind;
use crate::read_model::check::Key;
use crate::read_model::datum::{Datum, Sums};
use crate::read_model::fold::{Op, Row};

use super::table::{Gate, Table, place};
use super::{Error, Writer, sql};

/// A row's key, how its columns change, and the row to insert when there is none.
pub(super) type Update<'p> = (&'p Key, &'p [(usize, Op)], Option<&'p Row>);

/// Rows that one statement can change.
pub(super) struct Alike<'p> {
    /// All of them have a row to insert when there is none, or none of them.
    pub(super) rows: Vec<Update<'p>>,
    columns: Vec<(usize, sql::Kind)>,
    /// Each row changes some of the columns only.
    masked: bool,
}

impl Alike<'_> {
    /// Whether absent rows are to be inserted.
    pub(super) fn inserts(&self) -> bool {
        self.rows.first().is_some_and(|(_, _, row)| row.is_some())
    }
}

/// As few groups as possible.
pub(super) fn alike(updates: Vec<Update<'_>>) -> Vec<Alike<'_>> {
    let (inserting, silent): (Vec<_>, Vec<_>) =
        updates.into_iter().partition(|(_, _, row)| row.is_some());
    let mut groups = Vec::new();
    for mut rows in [silent, inserting] {
        if let Some(columns) = together(&rows) {
            groups.push(Alike {
                rows,
                columns,
                masked: true,
            });
            continue;
        }
        // Rows that change the same columns in the same way share a statement.
        rows.sort_by_cached_key(|(_, ops, _)| shape_of(ops));
        groups.extend(
            rows.chunk_by(|a, b| shape_of(a.1) == shape_of(b.1))
                .map(|rows| Alike {
                    rows: rows.to_vec(),
                    columns: shape_of(rows[0].1),
                    masked: false,
                }),
        );
    }
    groups
}

impl Writer<'_> {
    /// Updates present rows; returns the rows to insert for keys that were absent.
    pub(super) async fn update<'p>(
        &mut self,
        updates: Vec<Update<'p>>,
    ) -> Result<Vec<&'p Row>, Error> {
        let mut absent = Vec::new();
        for group in alike(updates) {
            let mut arguments = PgArguments::default();
            let statement = self
                .table
                .update(&mut arguments, None, &group, group.inserts())?;
            self.updated(&group, statement, arguments, &mut absent)
                .await?;
        }
        Ok(absent)
    }

    /// Runs an update; when its rows have a form for absent keys, notes those that it did not find.
    async fn updated<'p>(
        &mut self,
        group: &Alike<'p>,
        statement: String,
        arguments: PgArguments,
        absent: &mut Vec<&'p Row>,
    ) -> Result<(), Error> {
        if !group.inserts() {
            return self.execute(statement, arguments).await;
        }
        let found = sqlx::query_with(AssertSqlSafe(statement), arguments)
            .fetch_all(&mut *self.connection)
            .await
            .map_err(|error| self.refused(error))?;
        let mut updated = vec![false; group.rows.len()];
        for row in &found {
            let place: i64 = row.try_get(0).map_err(|error| self.refused(error))?;
            if let Some(flag) = usize::try_from(place - 1)
                .ok()
                .and_then(|place| updated.get_mut(place))
            {
                *flag = true;
            }
        }
        self.touched += found.len() as u64;
        absent.extend(
            group
                .rows
                .iter()
                .zip(updated)
                .filter(|(_, updated)| !updated)
                .filter_map(|((_, _, row), _)| *row),
        );
        Ok(())
    }
}

impl Table<'_> {
    /// With `returning`, the places of the rows that were there.
    pub(super) fn update(
        self,
        arguments: &mut PgArguments,
        gate: Gate,
        group: &Alike<'_>,
        returning: bool,
    ) -> Result<String, Error> {
        let rows = &group.rows;
        let place = place(arguments, gate, rows.len());
        self.add_keys(arguments, rows.iter().map(|(key, _, _)| *key))?;
        let mut columns = group.columns.clone();
        if group.masked {
            self.add_masked(arguments, gate, rows, &mut columns)?;
        } else {
            for (place, (column, kind)) in columns.iter_mut().enumerate() {
                let ops = || rows.iter().map(|(_, ops, _)| Some(&ops[place].1));
                *kind = kind.fitting(ops(), gate);
                self.add_op(arguments, *column, *kind, ops())?;
            }
        }
        let (schema, shape) = (self.schema, self.shape);
        Ok(sql::update(
            schema,
            shape,
            &columns,
            returning,
            group.masked,
            place,
        ))
    }

    /// Rows that change different columns.
    fn add_masked(
        self,
        arguments: &mut PgArguments,
        gate: Gate,
        rows: &[Update<'_>],
        columns: &mut [(usize, sql::Kind)],
    ) -> Result<(), Error> {
        let masks = rows.iter().map(|(_, ops, _)| {
            let mut mask = 0_i64;
            let mut place = 0;
            for (column, _) in *ops {
                while columns[place].0 != *column {
                    place += 1;
                }
                mask |= 1 << place;
            }
            mask
        });
        let masks: Vec<i64> = masks.collect();
        arguments.add(&masks).map_err(|why| self.encode(&*why))?;
        for (place, (column, kind)) in columns.iter_mut().enumerate() {
            let bit = 1_i64 << place;
            let wanted = *column;
            let ops = || {
                rows.iter().zip(&masks).map(move |((_, ops, _), mask)| {
                    // As many ops stand before it as lower bits are set.
                    let at = (mask & (bit - 1)).count_ones() as usize;
                    let op = (mask & bit != 0).then(|| &ops[at]);
                    debug_assert!(op.is_none_or(|(column, _)| *column == wanted));
                    op.map(|(_, op)| op)
                })
            };
            *kind = kind.fitting(ops(), gate);
            self.add_op(arguments, *column, *kind, ops())?;
        }
        Ok(())
    }

    /// One column's ops; none where a row does not change it.
    fn add_op<'o>(
        self,
        arguments: &mut PgArguments,
        column: usize,
        kind: sql::Kind,
        ops: impl Iterator<Item = Option<&'o Op>>,
    ) -> Result<(), Error> {
        let done = match kind {
            sql::Kind::Set => {
                let values = ops.map(|op| match op {
                    Some(Op::Set(datum)) => datum,
                    _ => &Datum::Null,
                });
                bind::add(arguments, self.column_type(column), values)
            }
            sql::Kind::Add | sql::Kind::AddSmall | sql::Kind::AddQuick => {
                add_sums(arguments, self.column_type(column), kind, ops.map(sums_of))
            }
        };
        done.map_err(|why| self.encode(&*why))
    }
}

fn shape_of(ops: &[(usize, Op)]) -> Vec<(usize, sql::Kind)> {
    ops.iter()
        .map(|(column, op)| (*column, kind_of(op)))
        .collect()
}

fn kind_of(op: &Op) -> sql::Kind {
    match op {
        Op::Set(_) => sql::Kind::Set,
        Op::Add(_) => sql::Kind::Add,
    }
}

fn sums_of(op: Option<&Op>) -> Option<&Sums> {
    match op {
        Some(Op::Add(sums)) => Some(sums),
        _ => None,
    }
}

/// The columns of a statement for all these rows, if they differ and one can do it: no column is set by one row and
/// added to by another.
fn together(updates: &[Update<'_>]) -> Option<Vec<(usize, sql::Kind)>> {
    const COLUMNS_MAX: usize = 63;
    let first = shape_of(updates.first()?.1);
    let mut columns = BTreeMap::new();
    let mut alike = true;
    for (_, ops, _) in updates {
        alike = alike && ops.len() == first.len();
        for (column, op) in *ops {
            let kind = kind_of(op);
            if *columns.entry(*column).or_insert(kind) != kind {
                return None;
            }
        }
    }
    let alike = alike && columns.len() == first.len();
    (!alike && columns.len() <= COLUMNS_MAX).then(|| columns.into_iter().collect())
}

impl sql::Kind {
    /// Small if all the sums are.
    fn fitting<'o>(self, ops: impl Iterator<Item = Option<&'o Op>>, gate: Gate) -> Self {
        let bound = i128::from(sql::SMALL_MAX);
        let is_small = |sums: &Sums| match sums {
            Sums::Whole {
                sum,
                lowest,
                highest,
            } => [sum, lowest, highest]
                .iter()
                .all(|amount| (-bound..=bound).contains(*amount)),
            other => other.is_monotone(),
        };
        if self == Self::Add && ops.filter_map(sums_of).all(is_small) {
            return gate.map_or(Self::AddSmall, |_| Self::AddQuick);
        }
        self
    }
}

/// Sums travel as three arrays where a running sum may matter, of text where an amount may be wider than its column.
fn add_sums<'s>(
    arguments: &mut PgArguments,
    column_type: ColumnType,
    kind: sql::Kind,
    sums: impl Iterator<Item = Option<&'s Sums>>,
) -> Result<(), sqlx::error::BoxDynError> {
    match column_type {
        ColumnType::BigInt => {
            let whole = sums.map(|sums| match sums {
                Some(Sums::Whole {
                    sum,
                    lowest,
                    highest,
                }) => [*sum, *lowest, *highest],
                _ => [0; 3],
            });
            let whole: Vec<[i128; 3]> = whole.collect();
            if kind == sql::Kind::AddQuick {
                let sums = whole.iter().map(|amounts| i64::try_from(amounts[0]));
                return arguments.add(sums.collect::<Result<Vec<_>, _>>()?);
            }
            for part in 0..3 {
                let amounts = whole.iter().map(|amounts| amounts[part]);
                if kind == sql::Kind::AddSmall {
                    arguments.add(
                        amounts
                            .map(|amount| i64::try_from(amount).unwrap_or_default())
                            .collect::<Vec<_>>(),
                    )?;
                } else {
                    arguments.add(amounts.map(|amount| amount.to_string()).collect::<Vec<_>>())?;
                }
            }
            Ok(())
        }
        ColumnType::Numeric => {
            let parts = sums.map(|sums| match sums {
                Some(Sums::Decimal {
                    sum,
                    lowest,
                    highest,
                }) => [Some(sum), Some(lowest), Some(highest)],
                _ => [None; 3],
            });
            let parts: Vec<[Option<&BigDecimal>; 3]> = parts.collect();
            let sent = if kind == sql::Kind::Add { 3 } else { 1 };
            for part in 0..sent {
                let numbers = parts.iter().map(|parts| parts[part]);
                let texts = numbers.map(|number| number.map(BigDecimal::to_plain_string));
                arguments.add(texts.collect::<Vec<_>>())?;
            }
            Ok(())
        }
        _ => {
            let sums = sums.map(|sums| match sums {
                Some(Sums::Double(sum)) => Some(*sum),
                _ => None,
            });
            arguments.add(sums.collect::<Vec<_>>())
        }
    }
}
