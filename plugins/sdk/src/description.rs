//! What a projection says of itself: its name, the events it wants and the tables it owns. The host creates the
//! tables; a plugin needs no migration of its own.

use crate::bindings::exports::projector::projection::manifest;

/// The type of a column, as PostgreSQL names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// `text`
    Text,
    /// `bigint`
    BigInt,
    /// `double precision`
    Double,
    /// `boolean`
    Boolean,
    /// `numeric`
    Numeric,
    /// `timestamptz`
    Timestamptz,
    /// `date`
    Date,
    /// `uuid`
    Uuid,
    /// `jsonb`
    Jsonb,
    /// `bytea`
    Bytea,
    /// `text[]`
    TextArray,
}

impl ColumnType {
    /// The name in SQL and in the contract.
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
}

#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) column_type: ColumnType,
    pub(crate) nullable: bool,
    pub(crate) default: Option<&'static str>,
}

/// A table that the projection owns.
#[derive(Debug, Clone)]
#[must_use]
pub struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<Column>,
    pub(crate) primary_key: Vec<&'static str>,
    indexes: Vec<Vec<&'static str>>,
}

impl Table {
    /// A table without columns yet.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            columns: Vec::new(),
            primary_key: Vec::new(),
            indexes: Vec::new(),
        }
    }

    /// A column in which null may not stand.
    pub fn column(self, name: &'static str, column_type: ColumnType) -> Self {
        self.with(name, column_type, false, None)
    }

    /// A column in which null may stand.
    pub fn nullable(self, name: &'static str, column_type: ColumnType) -> Self {
        self.with(name, column_type, true, None)
    }

    /// A column without null, and the text form of what stands in it when a write does not say.
    pub fn column_or(
        self,
        name: &'static str,
        column_type: ColumnType,
        default: &'static str,
    ) -> Self {
        self.with(name, column_type, false, Some(default))
    }

    /// The columns of the primary key, in order.
    pub fn primary_key(mut self, columns: impl IntoIterator<Item = &'static str>) -> Self {
        self.primary_key = columns.into_iter().collect();
        self
    }

    /// An index beside the primary key; not unique.
    pub fn index(mut self, columns: impl IntoIterator<Item = &'static str>) -> Self {
        self.indexes.push(columns.into_iter().collect());
        self
    }

    fn with(
        mut self,
        name: &'static str,
        column_type: ColumnType,
        nullable: bool,
        default: Option<&'static str>,
    ) -> Self {
        self.columns.push(Column {
            name,
            column_type,
            nullable,
            default,
        });
        self
    }
}

/// Everything that a projection says of itself.
#[derive(Debug, Clone)]
#[must_use]
pub struct Description {
    name: &'static str,
    version: &'static str,
    event_types: Vec<&'static str>,
    stream_prefixes: Vec<&'static str>,
    reads: bool,
    pub(crate) tables: Vec<Table>,
}

impl Description {
    /// A projection of this name; the version is usually `env!("CARGO_PKG_VERSION")`.
    pub const fn new(name: &'static str, version: &'static str) -> Self {
        Self {
            name,
            version,
            event_types: Vec::new(),
            stream_prefixes: Vec::new(),
            reads: false,
            tables: Vec::new(),
        }
    }

    /// The types of event that it wants; all when this is left out.
    pub fn events(mut self, types: impl IntoIterator<Item = &'static str>) -> Self {
        self.event_types.extend(types);
        self
    }

    /// The beginnings of the names of the streams that it wants; all when this is left out.
    pub fn streams(mut self, prefixes: impl IntoIterator<Item = &'static str>) -> Self {
        self.stream_prefixes.extend(prefixes);
        self
    }

    /// It looks rows up with [`Rows::get`](crate::Rows::get).
    pub const fn reads(mut self) -> Self {
        self.reads = true;
        self
    }

    /// A table that it owns.
    pub fn table(mut self, table: Table) -> Self {
        self.tables.push(table);
        self
    }

    /// Whether an event of this type in this stream is wanted, by the host's rule.
    #[must_use]
    pub fn wants(&self, event_type: &str, stream: &str) -> bool {
        (self.event_types.is_empty() || self.event_types.contains(&event_type))
            && (self.stream_prefixes.is_empty()
                || self
                    .stream_prefixes
                    .iter()
                    .any(|prefix| stream.starts_with(prefix)))
    }

    /// The contract's form.
    pub(crate) fn to_contract(&self) -> manifest::Description {
        manifest::Description {
            name: self.name.to_owned(),
            version: self.version.to_owned(),
            subscription: manifest::Subscription {
                types: owned(&self.event_types),
                stream_prefixes: owned(&self.stream_prefixes),
            },
            reads: self.reads,
            tables: self.tables.iter().map(table_to_contract).collect(),
            options: vec![(
                "sdk".to_owned(),
                concat!("rust/", env!("CARGO_PKG_VERSION")).to_owned(),
            )],
        }
    }
}

fn table_to_contract(table: &Table) -> manifest::Table {
    manifest::Table {
        name: table.name.to_owned(),
        columns: table
            .columns
            .iter()
            .map(|column| manifest::Column {
                name: column.name.to_owned(),
                column_type: column.column_type.sql().to_owned(),
                nullable: column.nullable,
                default_value: column.default.map(str::to_owned),
            })
            .collect(),
        primary_key: owned(&table.primary_key),
        indexes: table
            .indexes
            .iter()
            .map(|columns| manifest::Index {
                columns: owned(columns),
            })
            .collect(),
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}
