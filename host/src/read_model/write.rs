//! Folded writes as set-based SQL: a statement for each kind of change, whatever the number of rows.
//!
//! `merge` and `add` are UPDATE first, then INSERT of the keys that were absent: an upsert that omits a NOT
//! NULL column would fail even where the row exists.

mod sql;
mod update;

use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::{AssertSqlSafe, Row as _};
use thiserror::Error;

use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::error::{Class, Code};
use crate::plugin::manifest::ColumnType;

use super::bind;
use super::check::{Cells, Fault, Key, Shapes, TableShape};
use super::fold::{Absent, Folded, Pair, Phase, Present, Row, Rows};
use update::Update;

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
    /// A row that was found before is gone, or the other way round.
    #[error(
        "table {table:?}: something else than this projection changes its rows; the batch is tried again with the rows as they are now"
    )]
    Changed {
        /// Table of the statement.
        table: String,
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
            Self::Changed { .. } => Class::Transient,
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

impl Writer<'_> {
    async fn rows(&mut self, rows: &Rows) -> Result<(), Error> {
        let mut deletes: Vec<&Key> = Vec::new();
        let mut replaces: Vec<&Row> = Vec::new();
        let mut inserts: Vec<&Row> = Vec::new();
        let mut updates: Vec<Update<'_>> = Vec::new();
        let mut doubtful: Vec<(&Key, &Pair)> = Vec::new();
        let mut there: Vec<Update<'_>> = Vec::new();
        let mut not_there: Vec<&Row> = Vec::new();
        for (key, pair) in &rows.pairs {
            match pair.known {
                Some(true) => match &pair.present {
                    Present::Fault(fault) => return Err(Error::Fault(fault.clone())),
                    Present::Delete => deletes.push(key),
                    Present::Replace(row) => replaces.push(row),
                    Present::Update(ops) if ops.is_empty() => {}
                    Present::Update(ops) => there.push((key, ops, None)),
                },
                Some(false) => match &pair.absent {
                    Absent::Fault(fault) => return Err(Error::Fault(fault.clone())),
                    Absent::Row(row) => not_there.push(row),
                    Absent::Nothing => {}
                },
                None => {}
            }
            if pair.known.is_some() {
                continue;
            }
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
        self.update_known(&there).await?;
        self.insert_known(&not_there).await?;
        let absent = self.update(updates).await?;
        inserts.extend(absent);
        self.insert(&inserts, false).await?;
        self.insert(&replaces, true).await
    }

    /// Rows that were looked up and found.
    async fn update_known(&mut self, updates: &[Update<'_>]) -> Result<(), Error> {
        let before = self.touched;
        self.update(updates.to_vec()).await?;
        self.as_known(before, updates.len())
    }

    /// Rows that were looked up and not found.
    async fn insert_known(&mut self, rows: &[&Row]) -> Result<(), Error> {
        let before = self.touched;
        self.insert(rows, false).await?;
        self.as_known(before, rows.len())
    }

    fn as_known(&self, before: u64, rows: usize) -> Result<(), Error> {
        if self.touched - before == rows as u64 {
            return Ok(());
        }
        Err(Error::Changed {
            table: self.shape.table.name.as_str().to_owned(),
        })
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
