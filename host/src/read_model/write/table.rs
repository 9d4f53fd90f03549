//! Statements on one table, with their values: text and arguments belong together.

use sqlx::Arguments as _;
use sqlx::postgres::PgArguments;

use super::Error;
use super::sql::{self, Conflict, Few, Place};
use crate::database::identifier::Identifier;
use crate::plugin::manifest::ColumnType;
use crate::read_model::bind;
use crate::read_model::check::{Key, TableShape};
use crate::read_model::fold::Row;

/// One table of a generation.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) schema: &'a Identifier,
    pub(super) shape: &'a TableShape,
}

/// The condition under which a part of a larger statement does anything. What it refuses is done again without.
pub(super) type Gate = Option<&'static str>;

/// The place after what is bound already, of a statement for so many rows.
pub(super) fn place(arguments: &PgArguments, gate: Gate, rows: usize) -> Place {
    Place {
        parameters: arguments.len(),
        gate,
        rows: Few::of(rows),
    }
}

impl Table<'_> {
    pub(super) fn delete(
        self,
        arguments: &mut PgArguments,
        gate: Gate,
        keys: &[&Key],
    ) -> Result<String, Error> {
        let place = place(arguments, gate, keys.len());
        self.add_keys(arguments, keys.iter().copied())?;
        Ok(sql::delete(self.schema, self.shape, place))
    }

    pub(super) fn insert(
        self,
        arguments: &mut PgArguments,
        gate: Gate,
        rows: &[&Row],
        conflict: Conflict,
        but_for: Option<&str>,
    ) -> Result<String, Error> {
        // It joins nothing, so their number does not matter beyond one.
        let number = if rows.len() == 1 { 1 } else { usize::MAX };
        let place = place(arguments, gate, number);
        for (at, column) in self.shape.table.columns.iter().enumerate() {
            let values = rows.iter().map(|row| &row[at]);
            bind::add(arguments, column.column_type, values).map_err(|why| self.encode(&*why))?;
        }
        Ok(sql::insert(
            self.schema,
            self.shape,
            conflict,
            place,
            but_for,
        ))
    }

    pub(super) fn add_keys<'k>(
        self,
        arguments: &mut PgArguments,
        keys: impl Iterator<Item = &'k Key> + Clone,
    ) -> Result<(), Error> {
        bind::add_keys(arguments, self.shape, keys).map_err(|why| self.encode(&*why))
    }

    pub(super) fn column_type(self, column: usize) -> ColumnType {
        self.shape.table.columns[column].column_type
    }

    pub(super) fn name(self) -> String {
        self.shape.table.name.as_str().to_owned()
    }

    pub(super) fn encode(self, why: &(dyn std::error::Error + Send + Sync)) -> Error {
        Error::Encode {
            table: self.name(),
            why: why.to_string(),
        }
    }
}
