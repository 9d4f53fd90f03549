//! Folded writes as set-based SQL: a statement for each kind of change, whatever the number of rows.
//!
//! `merge` and `add` are UPDATE first, then INSERT of the keys that were absent: an upsert that omits a NOT
//! NULL column would fail even where the row exists.

mod groups;
mod single;
mod sql;
mod table;
mod update;

use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::{AssertSqlSafe, Row as _};
use thiserror::Error;

use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::error::{Class, Code};

use super::bind;
use super::check::{Cells, Fault, Key, Shapes};
use super::fold::{Folded, Pair, Phase, Row, Rows};
use groups::Groups;
use sql::Conflict;
use table::Table;
use update::Update;

pub use single::Single;
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
            table: Table { schema, shape },
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
    table: Table<'a>,
    touched: u64,
}

impl Writer<'_> {
    async fn rows(&mut self, rows: &Rows) -> Result<(), Error> {
        let mut groups = Groups::sort(rows)?;
        let doubtful = std::mem::take(&mut groups.doubtful);
        if !doubtful.is_empty() {
            let present = self.present(&doubtful).await?;
            groups.judge(&doubtful, &present)?;
        }
        self.delete(&groups.deletes).await?;
        self.update_known(groups.there).await?;
        self.insert_known(&groups.not_there).await?;
        let absent = self.update(groups.updates).await?;
        groups.inserts.extend(absent);
        self.insert(&groups.inserts, Conflict::Keep).await?;
        self.insert(&groups.replaces, Conflict::Replace).await
    }

    /// Rows that were looked up and found.
    async fn update_known(&mut self, updates: Vec<Update<'_>>) -> Result<(), Error> {
        let (before, rows) = (self.touched, updates.len());
        self.update(updates).await?;
        self.as_known(before, rows)
    }

    /// Rows that were looked up and not found.
    async fn insert_known(&mut self, rows: &[&Row]) -> Result<(), Error> {
        let before = self.touched;
        self.insert(rows, Conflict::Keep).await?;
        self.as_known(before, rows.len())
    }

    fn as_known(&self, before: u64, rows: usize) -> Result<(), Error> {
        if self.touched - before == rows as u64 {
            return Ok(());
        }
        Err(Error::Changed {
            table: self.table.name(),
        })
    }

    /// Whether the rows of these keys are there.
    async fn present(&mut self, doubtful: &[(&Key, &Pair)]) -> Result<Vec<bool>, Error> {
        let mut arguments = PgArguments::default();
        let keys = doubtful.iter().map(|(key, _)| *key);
        self.table.add_keys(&mut arguments, keys)?;
        let statement = sql::present(self.table.schema, self.table.shape);
        sqlx::query_with(AssertSqlSafe(statement), arguments)
            .fetch_all(&mut *self.connection)
            .await
            .and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect())
            .map_err(|error| self.refused(error))
    }

    async fn delete(&mut self, keys: &[&Key]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut arguments = PgArguments::default();
        let statement = self.table.delete(&mut arguments, None, keys)?;
        self.execute(statement, arguments).await
    }

    async fn insert(&mut self, rows: &[&Row], conflict: Conflict) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut arguments = PgArguments::default();
        let statement = self
            .table
            .insert(&mut arguments, None, rows, conflict, None)?;
        self.execute(statement, arguments).await
    }

    async fn remove_where(&mut self, all: &[Cells]) -> Result<(), Error> {
        let columns_of =
            |cells: &Cells| cells.iter().map(|(column, _)| *column).collect::<Vec<_>>();
        for group in all.chunk_by(|a, b| columns_of(a) == columns_of(b)) {
            let columns = columns_of(&group[0]);
            let mut arguments = PgArguments::default();
            for (place, &column) in columns.iter().enumerate() {
                let values = group.iter().map(|cells| &cells[place].1);
                bind::add(&mut arguments, self.table.column_type(column), values)
                    .map_err(|why| self.table.encode(&*why))?;
            }
            self.execute(
                sql::remove_where(self.table.schema, self.table.shape, &columns),
                arguments,
            )
            .await?;
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
            table: self.table.name(),
            column: named,
            source: Box::new(source),
        }
    }
}
