//! Folded writes as set-based SQL: a statement for each kind of change, whatever the number of rows.
//!
//! `merge` and `add` are UPDATE first, then INSERT of the keys that were absent: an upsert that omits a NOT
//! NULL column would fail even where the row exists.

mod sql;

use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::{Arguments as _, AssertSqlSafe, Row as _};
use thiserror::Error;

use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::error::{Class, Code};
use crate::plugin::manifest::ColumnType;

use super::bind;
use super::check::{Cells, Fault, Key, Shapes, TableShape};
use super::datum::{Datum, Sums};
use super::fold::{Absent, Folded, Op, Pair, Phase, Present, Row, Rows};

pub(super) use sql::select;

/// Code of a write that the database refuses.
pub const REFUSED_WRITE: Code = Code(702);

/// Why a batch's writes could not be applied.
#[derive(Debug, Error)]
pub enum Error {
    /// A write that cannot be applied to the row as it stands.
    #[error("{0}")]
    Fault(Box<Fault>),
    /// The database refused a statement.
    #[error("{REFUSED_WRITE}: table {table:?}{}: {source}", column.as_ref().map(|c| format!(", column {c:?}")).unwrap_or_default())]
    Refused {
        /// Table of the statement.
        table: String,
        /// Column, when the database names one.
        column: Option<String>,
        /// What the database said.
        source: Box<DatabaseError>,
    },
    /// The statement could not be built.
    #[error("table {table:?}: cannot encode the values: {why}")]
    Encode {
        /// Table of the statement.
        table: String,
        /// What the driver said.
        why: String,
    },
}

impl Error {
    /// Whether an event is to blame, or the database's state.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Fault(_) | Self::Encode { .. } => Class::Poison,
            Self::Refused { source, .. } => source.class(),
        }
    }

    /// Index of the event in the batch, where it is known.
    #[must_use]
    pub fn event(&self) -> Option<usize> {
        match self {
            Self::Fault(fault) => Some(fault.event),
            _ => None,
        }
    }
}

/// Applies a batch's folded writes inside the caller's transaction. Returns how many rows they touched.
///
/// # Errors
/// The first statement that fails; the transaction is then unusable.
pub async fn apply(
    connection: &mut PgConnection,
    schema: &Identifier,
    shapes: &Shapes,
    folded: &Folded,
) -> Result<u64, Error> {
    let mut touched = 0;
    for (shape, phases) in shapes.tables().iter().zip(&folded.tables) {
        let mut writer = Writer {
            connection,
            schema,
            shape,
            touched: 0,
        };
        for phase in phases {
            match phase {
                Phase::Rows(rows) => writer.rows(rows).await?,
                Phase::RemoveWhere(all) => writer.remove_where(all).await?,
            }
        }
        touched += writer.touched;
    }
    Ok(touched)
}

struct Writer<'a> {
    connection: &'a mut PgConnection,
    schema: &'a Identifier,
    shape: &'a TableShape,
    touched: u64,
}

type Update<'p> = (&'p Key, &'p [(usize, Op)], Option<&'p Row>);

impl Writer<'_> {
    async fn rows(&mut self, rows: &Rows) -> Result<(), Error> {
        let mut deletes: Vec<&Key> = Vec::new();
        let mut replaces: Vec<&Row> = Vec::new();
        let mut inserts: Vec<&Row> = Vec::new();
        let mut updates: Vec<Update<'_>> = Vec::new();
        let mut doubtful: Vec<(&Key, &Pair)> = Vec::new();
        for (key, pair) in &rows.pairs {
            match (&pair.absent, &pair.present) {
                (Absent::Fault(fault), Present::Fault(_)) => {
                    return Err(Error::Fault(fault.clone()));
                }
                (Absent::Fault(_), _) | (_, Present::Fault(_)) => doubtful.push((key, pair)),
                (_, Present::Delete) => deletes.push(key),
                (_, Present::Replace(row)) => replaces.push(row),
                (Absent::Row(row), Present::Update(ops)) if ops.is_empty() => inserts.push(row),
                (Absent::Row(row), Present::Update(ops)) => updates.push((key, ops, Some(row))),
                (Absent::Nothing, Present::Update(ops)) => {
                    if !ops.is_empty() {
                        updates.push((key, ops, None));
                    }
                }
            }
        }
        if !doubtful.is_empty() {
            self.judge(
                &doubtful,
                &mut updates,
                &mut deletes,
                &mut replaces,
                &mut inserts,
            )
            .await?;
        }
        self.delete(&deletes).await?;
        let absent = self.update(updates).await?;
        inserts.extend(absent);
        self.insert(&inserts, false).await?;
        self.insert(&replaces, true).await
    }

    /// Pairs of which one outcome cannot be applied: the row's presence decides.
    async fn judge<'p>(
        &mut self,
        doubtful: &[(&'p Key, &'p Pair)],
        updates: &mut Vec<Update<'p>>,
        deletes: &mut Vec<&'p Key>,
        replaces: &mut Vec<&'p Row>,
        inserts: &mut Vec<&'p Row>,
    ) -> Result<(), Error> {
        let mut arguments = PgArguments::default();
        self.add_keys(&mut arguments, doubtful.iter().map(|(key, _)| *key))?;
        let statement = sql::present(self.schema, self.shape);
        let present: Vec<bool> = sqlx::query_with(AssertSqlSafe(statement), arguments)
            .fetch_all(&mut *self.connection)
            .await
            .and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect())
            .map_err(|error| self.refused(error))?;
        for ((key, pair), present) in doubtful.iter().zip(present) {
            match (present, &pair.absent, &pair.present) {
                (true, _, Present::Fault(fault)) | (false, Absent::Fault(fault), _) => {
                    return Err(Error::Fault(fault.clone()));
                }
                (true, _, Present::Update(ops)) => {
                    if !ops.is_empty() {
                        updates.push((key, ops, None));
                    }
                }
                (true, _, Present::Replace(row)) => replaces.push(row),
                (true, _, Present::Delete) => deletes.push(key),
                (false, Absent::Row(row), _) => inserts.push(row),
                (false, Absent::Nothing, _) => {}
            }
        }
        Ok(())
    }

    async fn delete(&mut self, keys: &[&Key]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut arguments = PgArguments::default();
        self.add_keys(&mut arguments, keys.iter().copied())?;
        self.execute(sql::delete(self.schema, self.shape), arguments)
            .await
    }

    /// Updates present rows; returns the rows to insert for keys that were absent.
    async fn update<'p>(&mut self, mut updates: Vec<Update<'p>>) -> Result<Vec<&'p Row>, Error> {
        let mut absent = Vec::new();
        // Rows that change the same columns in the same way share a statement.
        updates.sort_by_cached_key(|(_, ops, row)| (shape_of(ops), row.is_some()));
        for group in updates
            .chunk_by(|a, b| shape_of(a.1) == shape_of(b.1) && a.2.is_some() == b.2.is_some())
        {
            let (_, ops, row) = group[0];
            let columns = shape_of(ops);
            let mut arguments = PgArguments::default();
            self.add_keys(&mut arguments, group.iter().map(|(key, _, _)| *key))?;
            for (place, (column, kind)) in columns.iter().enumerate() {
                let ops = group.iter().map(|(_, ops, _)| &ops[place].1);
                self.add_op(&mut arguments, *column, *kind, ops)?;
            }
            let statement = sql::update(self.schema, self.shape, &columns, row.is_some());
            if row.is_none() {
                self.execute(statement, arguments).await?;
                continue;
            }
            let found = sqlx::query_with(AssertSqlSafe(statement), arguments)
                .fetch_all(&mut *self.connection)
                .await
                .map_err(|error| self.refused(error))?;
            let mut updated = vec![false; group.len()];
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
                    .iter()
                    .zip(updated)
                    .filter(|(_, updated)| !updated)
                    .filter_map(|((_, _, row), _)| *row),
            );
        }
        Ok(absent)
    }

    async fn insert(&mut self, rows: &[&Row], replace: bool) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut arguments = PgArguments::default();
        for (at, column) in self.shape.table.columns.iter().enumerate() {
            bind::add(
                &mut arguments,
                column.column_type,
                rows.iter().map(|row| &row[at]),
            )
            .map_err(|why| self.encode(&*why))?;
        }
        self.execute(sql::insert(self.schema, self.shape, replace), arguments)
            .await
    }

    async fn remove_where(&mut self, all: &[Cells]) -> Result<(), Error> {
        let columns_of =
            |cells: &Cells| cells.iter().map(|(column, _)| *column).collect::<Vec<_>>();
        for group in all.chunk_by(|a, b| columns_of(a) == columns_of(b)) {
            let columns = columns_of(&group[0]);
            let mut arguments = PgArguments::default();
            for (place, &column) in columns.iter().enumerate() {
                let values = group.iter().map(|cells| &cells[place].1);
                bind::add(&mut arguments, self.column_type(column), values)
                    .map_err(|why| self.encode(&*why))?;
            }
            self.execute(
                sql::remove_where(self.schema, self.shape, &columns),
                arguments,
            )
            .await?;
        }
        Ok(())
    }

    fn add_keys<'k>(
        &self,
        arguments: &mut PgArguments,
        keys: impl Iterator<Item = &'k Key>,
    ) -> Result<(), Error> {
        let keys: Vec<&Key> = keys.collect();
        for (part, &column) in self.shape.table.primary_key.iter().enumerate() {
            bind::add(
                arguments,
                self.column_type(column),
                keys.iter().map(|key| &key[part]),
            )
            .map_err(|why| self.encode(&*why))?;
        }
        Ok(())
    }

    fn add_op<'o>(
        &self,
        arguments: &mut PgArguments,
        column: usize,
        kind: sql::Kind,
        ops: impl Iterator<Item = &'o Op>,
    ) -> Result<(), Error> {
        let done = match kind {
            sql::Kind::Set => {
                let values = ops.map(|op| {
                    if let Op::Set(datum) = op {
                        datum
                    } else {
                        &Datum::Null
                    }
                });
                bind::add(arguments, self.column_type(column), values)
            }
            sql::Kind::Add => {
                let sums: Vec<&Sums> = ops
                    .filter_map(|op| {
                        if let Op::Add(sums) = op {
                            Some(sums)
                        } else {
                            None
                        }
                    })
                    .collect();
                add_sums(arguments, &sums)
            }
        };
        done.map_err(|why| self.encode(&*why))
    }

    async fn execute(&mut self, statement: String, arguments: PgArguments) -> Result<(), Error> {
        let done = sqlx::query_with(AssertSqlSafe(statement), arguments)
            .execute(&mut *self.connection)
            .await;
        self.touched += done.map_err(|error| self.refused(error))?.rows_affected();
        Ok(())
    }

    fn column_type(&self, column: usize) -> ColumnType {
        self.shape.table.columns[column].column_type
    }

    fn refused(&self, error: sqlx::Error) -> Error {
        let mut source = DatabaseError::from(error);
        let mut named = None;
        if let DatabaseError::Statement {
            sqlstate,
            message,
            column,
            ..
        } = &mut source
        {
            named = column.clone();
            if let Some((column, what)) = sql::overflow(message) {
                named = Some(column);
                *message = what;
                // numeric_value_out_of_range, as the database would say by itself.
                "22003".clone_into(sqlstate);
            }
        }
        Error::Refused {
            table: self.shape.table.name.as_str().to_owned(),
            column: named,
            source: Box::new(source),
        }
    }

    fn encode(&self, why: &(dyn std::error::Error + Send + Sync)) -> Error {
        Error::Encode {
            table: self.shape.table.name.as_str().to_owned(),
            why: why.to_string(),
        }
    }
}

fn shape_of(ops: &[(usize, Op)]) -> Vec<(usize, sql::Kind)> {
    let kind = |op: &Op| {
        if matches!(op, Op::Set(_)) {
            sql::Kind::Set
        } else {
            sql::Kind::Add
        }
    };
    ops.iter().map(|(column, op)| (*column, kind(op))).collect()
}

/// Whole sums travel as three arrays of text, since an amount may be wider than its column.
fn add_sums(arguments: &mut PgArguments, sums: &[&Sums]) -> Result<(), sqlx::error::BoxDynError> {
    match sums.first() {
        Some(Sums::Whole { .. }) => {
            let column = |pick: fn(i128, i128, i128) -> i128| -> Vec<String> {
                sums.iter()
                    .filter_map(|sums| match sums {
                        Sums::Whole {
                            sum,
                            lowest,
                            highest,
                        } => Some(pick(*sum, *lowest, *highest).to_string()),
                        _ => None,
                    })
                    .collect()
            };
            arguments.add(column(|sum, _, _| sum))?;
            arguments.add(column(|_, lowest, _| lowest))?;
            arguments.add(column(|_, _, highest| highest))
        }
        Some(Sums::Decimal(_)) => arguments.add(
            sums.iter()
                .filter_map(|sums| {
                    if let Sums::Decimal(sum) = sums {
                        Some(sum.to_plain_string())
                    } else {
                        None
                    }
                })
                .collect::<Vec<_>>(),
        ),
        Some(Sums::Double(_)) | None => arguments.add(
            sums.iter()
                .filter_map(|sums| {
                    if let Sums::Double(sum) = sums {
                        Some(*sum)
                    } else {
                        None
                    }
                })
                .collect::<Vec<_>>(),
        ),
    }
}
