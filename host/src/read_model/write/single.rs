//! A small batch as one statement that is its own transaction: one round trip instead of one for each table.
//!
//! Promises: the checkpoint moves first, and only if it does anything else happens; all of it is committed, or nothing;
//! what was looked up is as it was found. Whoever gets an error may apply the batch statement by statement in a
//! transaction, where the error names table and column. Must never: take a batch whose order within a table matters.

use std::fmt::Write as _;

use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::{Arguments as _, AssertSqlSafe, Row as _};

use super::Error;
use super::groups::Groups;
use super::sql::Conflict;
use super::table::Table;
use super::update::alike;
use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::read_model::check::Shapes;
use crate::read_model::fold::{Folded, Phase, Row, Rows};

/// Rows of such a batch. Beyond, round trips matter little, and each mixture of rows is a statement to prepare.
const ROWS_MAX: usize = 8;

/// Every part but the first happens only if the first has changed its row. PostgreSQL asks once, before anything else of
/// the part.
const GATE: Option<&str> = Some("EXISTS (SELECT FROM fence)");

/// A statement that is ready to run.
#[derive(Debug)]
pub struct Single {
    statement: String,
    arguments: PgArguments,
}

/// Its parts, as they are put together.
struct Parts {
    text: String,
    arguments: PgArguments,
    count: usize,
    /// What must hold in the end.
    checks: Vec<String>,
}

impl Single {
    /// None when the batch is too large for it, when its order matters, or when something of it cannot be applied.
    /// `fence` is the statement that moves the checkpoint, with its values.
    #[must_use]
    pub fn new(
        (fence, arguments): (String, PgArguments),
        schema: &Identifier,
        shapes: &Shapes,
        folded: &Folded,
    ) -> Option<Self> {
        let mut all = Vec::new();
        for (shape, phases) in shapes.tables().iter().zip(&folded.tables) {
            // A later phase changes what an earlier one left; within a statement nobody would see that.
            match phases.as_slice() {
                [] => {}
                [Phase::Rows(rows)] => all.push((Table { schema, shape }, rows)),
                _ => return None,
            }
        }
        if all.iter().map(|(_, rows)| rows.pairs.len()).sum::<usize>() > ROWS_MAX {
            return None;
        }
        let mut parts = Parts {
            text: format!("WITH fence AS ({fence} RETURNING true)"),
            arguments,
            count: 0,
            checks: Vec::new(),
        };
        for (table, rows) in all {
            parts.table(table, rows).ok()??;
        }
        Some(parts.finish())
    }

    /// Commits the batch. False when the checkpoint did not stand where it must: nothing was done.
    ///
    /// # Errors
    /// When the statement failed. If the server said so, nothing of it is left.
    pub async fn commit(self, connection: &mut PgConnection) -> Result<bool, DatabaseError> {
        // To the very end of the answer: only then it is committed.
        let rows = sqlx::query_with(AssertSqlSafe(self.statement), self.arguments)
            .fetch_all(connection)
            .await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.try_get(0)?)
    }
}

impl Parts {
    /// The changes of one table. None when it depends on what is there whether they can be applied.
    fn table(&mut self, table: Table<'_>, rows: &Rows) -> Result<Option<()>, Error> {
        let groups = Groups::sort(rows)?;
        if !groups.doubtful.is_empty() {
            return Ok(None);
        }
        if !groups.deletes.is_empty() {
            let part = table.delete(&mut self.arguments, GATE, &groups.deletes)?;
            self.add(&part);
        }
        for group in alike(groups.there) {
            let part = table.update(&mut self.arguments, GATE, &group, true)?;
            let name = self.add(&part);
            let rows = i64::try_from(group.rows.len()).unwrap_or(i64::MAX);
            self.arguments
                .add(rows)
                .map_err(|why| table.encode(&*why))?;
            let number = self.arguments.len();
            self.checks
                .push(format!("(SELECT count(*) FROM {name}) = ${number}"));
        }
        if !groups.not_there.is_empty() {
            self.insert(table, &groups.not_there, Conflict::Refuse, None)?;
        }
        for group in alike(groups.updates) {
            let part = table.update(&mut self.arguments, GATE, &group, group.inserts())?;
            let name = self.add(&part);
            if group.inserts() {
                let rows: Vec<_> = group.rows.iter().filter_map(|(_, _, row)| *row).collect();
                self.insert(table, &rows, Conflict::Keep, Some(&name))?;
            }
        }
        if !groups.inserts.is_empty() {
            self.insert(table, &groups.inserts, Conflict::Keep, None)?;
        }
        if !groups.replaces.is_empty() {
            self.insert(table, &groups.replaces, Conflict::Replace, None)?;
        }
        Ok(Some(()))
    }

    fn insert(
        &mut self,
        table: Table<'_>,
        rows: &[&Row],
        conflict: Conflict,
        but_for: Option<&str>,
    ) -> Result<(), Error> {
        let part = table.insert(&mut self.arguments, GATE, rows, conflict, but_for)?;
        self.add(&part);
        Ok(())
    }

    /// One more part; returns its name.
    fn add(&mut self, part: &str) -> String {
        self.count += 1;
        let name = format!("part{}", self.count);
        let _ = write!(self.text, ", {name} AS ({part})");
        name
    }

    /// A check that does not hold divides by zero, which undoes everything.
    fn finish(mut self) -> Single {
        self.text.push_str(" SELECT EXISTS (SELECT FROM fence)");
        if !self.checks.is_empty() {
            let _ = write!(
                self.text,
                ", 1 / CASE WHEN NOT EXISTS (SELECT FROM fence) OR ({}) THEN 1 ELSE 0 END",
                self.checks.join(" AND ")
            );
        }
        Single {
            statement: self.text,
            arguments: self.arguments,
        }
    }
}
