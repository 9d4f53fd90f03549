//! What a plugin says of itself, checked: its name, the events it wants, the tables it owns.
//!
//! `check` makes it from what `describe` returned and lists every fault at once; `form` is the JSON that is
//! kept with a generation, so that a generation knows its tables even when the plugin's file is gone.

use serde::{Deserialize, Serialize};

use crate::database::identifier::Identifier;
use crate::event_store::event::Subscription;

mod check;
mod compare;
mod form;

pub use check::{ManifestFault, PROJECTION_NAME_BYTES_MAX};
pub use compare::Difference;

/// The type of a column, as PostgreSQL names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ColumnType {
    /// `text`
    #[serde(rename = "text")]
    Text,
    /// `bigint`
    #[serde(rename = "bigint")]
    BigInt,
    /// `double precision`
    #[serde(rename = "double precision")]
    Double,
    /// `boolean`
    #[serde(rename = "boolean")]
    Boolean,
    /// `numeric`
    #[serde(rename = "numeric")]
    Numeric,
    /// `timestamptz`
    #[serde(rename = "timestamptz")]
    Timestamptz,
    /// `date`
    #[serde(rename = "date")]
    Date,
    /// `uuid`
    #[serde(rename = "uuid")]
    Uuid,
    /// `jsonb`
    #[serde(rename = "jsonb")]
    Jsonb,
    /// `bytea`
    #[serde(rename = "bytea")]
    Bytea,
    /// `text[]`
    #[serde(rename = "text[]")]
    TextArray,
}

impl ColumnType {
    /// All of them, for messages and conversions.
    pub const ALL: [Self; 11] = [
        Self::Text,
        Self::BigInt,
        Self::Double,
        Self::Boolean,
        Self::Numeric,
        Self::Timestamptz,
        Self::Date,
        Self::Uuid,
        Self::Jsonb,
        Self::Bytea,
        Self::TextArray,
    ];

    /// The name in SQL and in the plugin contract.
    #[must_use]
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::BigInt => "bigint",
            Self::Double => "double precision",
            Self::Boolean => "boolean",
            Self::Numeric => "numeric",
            Self::Timestamptz => "timestamptz",
            Self::Date => "date",
            Self::Uuid => "uuid",
            Self::Jsonb => "jsonb",
            Self::Bytea => "bytea",
            Self::TextArray => "text[]",
        }
    }

    /// The type itself in a statement: no other schema's type of the same name can be meant.
    #[must_use]
    pub const fn qualified(self) -> &'static str {
        match self {
            Self::Text => "pg_catalog.text",
            Self::BigInt => "pg_catalog.int8",
            Self::Double => "pg_catalog.float8",
            Self::Boolean => "pg_catalog.bool",
            Self::Numeric => "pg_catalog.numeric",
            Self::Timestamptz => "pg_catalog.timestamptz",
            Self::Date => "pg_catalog.date",
            Self::Uuid => "pg_catalog.uuid",
            Self::Jsonb => "pg_catalog.jsonb",
            Self::Bytea => "pg_catalog.bytea",
            Self::TextArray => "pg_catalog.text[]",
        }
    }

    /// The type of this name.
    #[must_use]
    pub fn from_sql(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.sql() == name)
    }

    /// Whether `add` may change such a column.
    #[must_use]
    pub const fn is_numeric(self) -> bool {
        matches!(self, Self::BigInt | Self::Double | Self::Numeric)
    }
}

/// A column of a plugin's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: Identifier,
    /// Its type.
    pub column_type: ColumnType,
    /// Whether null may stand in it; never true for a part of the primary key.
    pub nullable: bool,
    /// Text form of the default.
    pub default: Option<String>,
}

/// A table that a plugin owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name, the same in the generation's schema and in the readers' schema.
    pub name: Identifier,
    /// Its columns, in declared order.
    pub columns: Vec<Column>,
    /// Indexes into `columns`, in key order; never empty.
    pub primary_key: Vec<usize>,
    /// Indexes beside the primary key, as indexes into `columns`; not unique.
    pub indexes: Vec<Vec<usize>>,
}

impl Table {
    /// The place of a column.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns
            .iter()
            .position(|column| column.name.as_str() == name)
    }
}

/// Everything that a plugin says of itself. Its JSON form is stable: what an older host wrote is read for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "form::Form", try_from = "form::Form")]
pub struct Manifest {
    /// The projection's name.
    pub name: String,
    /// The plugin's own version.
    pub version: String,
    /// The events that it wants.
    pub subscription: Subscription,
    /// Whether it looks rows up.
    pub reads: bool,
    /// The tables that it owns.
    pub tables: Vec<Table>,
}
