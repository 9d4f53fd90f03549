//! A column value in the form in which it is compared, folded and sent.
//!
//! Host and SDK agree on one canonical text form for each type: lower-case uuid, UTC times with `Z` cut to
//! microseconds, plain numerics. A value that does not fit its column is refused here, before any SQL.

mod amount;
mod json;
pub mod size;
mod text;

use std::hash::{Hash, Hasher};

use bigdecimal::BigDecimal;
use uuid::Uuid;

use crate::guest::bindings::Value;
use crate::guest::writes::ValueRef;
use crate::plugin::manifest::ColumnType;

pub use amount::{Amount, Sums};
pub use text::{date_text, timestamp_text};

/// One value of one column.
#[derive(Debug, Clone)]
pub enum Datum {
    /// SQL null.
    Null,
    /// `boolean`
    Boolean(bool),
    /// `bigint`
    BigInt(i64),
    /// `double precision`, finite.
    Double(f64),
    /// `text` without NUL.
    Text(String),
    /// `numeric`, finite.
    Numeric(BigDecimal),
    /// `timestamptz`: microseconds since 1970-01-01T00:00:00Z.
    Timestamptz(i64),
    /// `date`: days since 1970-01-01.
    Date(i32),
    /// `uuid`
    Uuid(Uuid),
    /// `jsonb`: valid JSON text that PostgreSQL can store.
    Jsonb(String),
    /// `bytea`
    Bytea(Vec<u8>),
    /// `text[]`, elements without NUL.
    TextArray(Vec<String>),
}

impl Datum {
    /// Whether it is null.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Converts a guest's value to a column's type. `position` is that of the write's event.
    ///
    /// # Errors
    /// A sentence that says why the value does not fit, without table and column, which the caller knows.
    pub fn from_value(
        value: ValueRef<'_>,
        column_type: ColumnType,
        position: i64,
    ) -> Result<Self, String> {
        match value {
            ValueRef::Null => Ok(Self::Null),
            ValueRef::Position => Self::from_int(position, column_type),
            ValueRef::Int(int) => Self::from_int(int, column_type),
            ValueRef::Boolean(boolean) => match column_type {
                ColumnType::Boolean => Ok(Self::Boolean(boolean)),
                ColumnType::Jsonb => Ok(Self::Jsonb(boolean.to_string())),
                _ => Err(misfit("a boolean", column_type)),
            },
            ValueRef::Float(float) => Self::from_float(float, column_type),
            ValueRef::Text(text) => Self::from_text(text, column_type),
            ValueRef::Bytes(bytes) => match column_type {
                ColumnType::Bytea => Ok(Self::Bytea(bytes.to_vec())),
                _ => Err(misfit("a list of bytes", column_type)),
            },
            ValueRef::Texts(texts) => match column_type {
                ColumnType::TextArray => {
                    texts.iter().try_for_each(|text| text::without_nul(text))?;
                    Ok(Self::TextArray(
                        texts.into_iter().map(str::to_owned).collect(),
                    ))
                }
                _ => Err(misfit("a list of texts", column_type)),
            },
            ValueRef::Other(name, text) => {
                let named = ColumnType::from_sql(name);
                if named == Some(column_type)
                    || (named == Some(ColumnType::Numeric) && column_type.is_numeric())
                {
                    Self::from_text(text, column_type)
                } else {
                    Err(misfit(&format!("a value of type {name:?}"), column_type))
                }
            }
        }
    }

    /// Reads the text form of a value, as guests in every language send it.
    ///
    /// # Errors
    /// A sentence that says why the text does not fit.
    pub fn from_text(text: &str, column_type: ColumnType) -> Result<Self, String> {
        match column_type {
            ColumnType::Text => {
                text::without_nul(text)?;
                Ok(Self::Text(text.to_owned()))
            }
            ColumnType::BigInt => text::bigint(text).map(Self::BigInt),
            ColumnType::Double => text::double(text).map(Self::double),
            ColumnType::Boolean => text::boolean(text).map(Self::Boolean),
            ColumnType::Numeric => text::numeric(text).map(Self::Numeric),
            ColumnType::Timestamptz => text::timestamp(text).map(Self::Timestamptz),
            ColumnType::Date => text::date(text).map(Self::Date),
            ColumnType::Uuid => text::uuid(text).map(Self::Uuid),
            ColumnType::Jsonb => {
                json::storable(text)?;
                Ok(Self::Jsonb(text.to_owned()))
            }
            ColumnType::Bytea => text::hex(text).map(Self::Bytea),
            ColumnType::TextArray => Err(misfit("a text", column_type)),
        }
    }

    fn from_int(int: i64, column_type: ColumnType) -> Result<Self, String> {
        match column_type {
            ColumnType::BigInt => Ok(Self::BigInt(int)),
            ColumnType::Numeric => Ok(Self::Numeric(BigDecimal::from(int))),
            ColumnType::Double => text::exact(int)
                .map(Self::Double)
                .ok_or_else(|| text::inexact(&int.to_string())),
            ColumnType::Jsonb => Ok(Self::Jsonb(int.to_string())),
            _ => Err(misfit(&format!("the whole number {int}"), column_type)),
        }
    }

    fn from_float(float: f64, column_type: ColumnType) -> Result<Self, String> {
        if !float.is_finite() {
            return Err(format!("{float} is not a finite number"));
        }
        match column_type {
            ColumnType::Double => Ok(Self::double(float)),
            ColumnType::BigInt => text::whole(float).map(Self::BigInt),
            ColumnType::Numeric => text::numeric(&float.to_string()).map(Self::Numeric),
            ColumnType::Jsonb => serde_json::to_string(&float)
                .map(Self::Jsonb)
                .map_err(|error| error.to_string()),
            _ => Err(misfit(&format!("the number {float}"), column_type)),
        }
    }

    /// There is one zero: −0 equals 0, but reads otherwise and divides otherwise.
    const fn double(float: f64) -> Self {
        Self::Double(if float == 0.0 { 0.0 } else { float })
    }

    /// The one form of all values that equal this one, for keys: which of them the row shows must not depend on the
    /// writes before.
    #[must_use]
    pub fn into_key(self) -> Self {
        match self {
            Self::Numeric(number) => Self::Numeric(text::shortest(&number)),
            other => other,
        }
    }

    /// The value as a guest sees it in a looked-up row: numbers as they are, the rest as canonical text.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(boolean) => Value::Boolean(*boolean),
            Self::BigInt(int) => Value::Int(*int),
            Self::Double(float) => Value::Float(*float),
            Self::Text(text) | Self::Jsonb(text) => Value::Text(text.clone()),
            Self::Numeric(number) => Value::Text(number.to_plain_string()),
            Self::Timestamptz(micros) => Value::Text(timestamp_text(*micros)),
            Self::Date(days) => Value::Text(date_text(*days)),
            Self::Uuid(uuid) => Value::Text(uuid.to_string()),
            Self::Bytea(bytes) => Value::Bytes(bytes.clone()),
            Self::TextArray(texts) => Value::Texts(texts.clone()),
        }
    }
}

/// Equality of column values as PostgreSQL sees it, with null equal to null.
impl PartialEq for Datum {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::BigInt(a), Self::BigInt(b)) | (Self::Timestamptz(a), Self::Timestamptz(b)) => {
                a == b
            }
            (Self::Double(a), Self::Double(b)) => a == b,
            (Self::Text(a), Self::Text(b)) | (Self::Jsonb(a), Self::Jsonb(b)) => a == b,
            (Self::Numeric(a), Self::Numeric(b)) => a == b,
            (Self::Date(a), Self::Date(b)) => a == b,
            (Self::Uuid(a), Self::Uuid(b)) => a == b,
            (Self::Bytea(a), Self::Bytea(b)) => a == b,
            (Self::TextArray(a), Self::TextArray(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Datum {}

impl Hash for Datum {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Null => {}
            Self::Boolean(boolean) => boolean.hash(state),
            Self::BigInt(int) | Self::Timestamptz(int) => int.hash(state),
            // 0.0 equals -0.0, so both must hash alike.
            Self::Double(float) => (if *float == 0.0 { 0.0_f64 } else { *float })
                .to_bits()
                .hash(state),
            Self::Text(text) | Self::Jsonb(text) => text.hash(state),
            Self::Numeric(number) => number.normalized().hash(state),
            Self::Date(days) => days.hash(state),
            Self::Uuid(uuid) => uuid.hash(state),
            Self::Bytea(bytes) => bytes.hash(state),
            Self::TextArray(texts) => texts.hash(state),
        }
    }
}

fn misfit(what: &str, column_type: ColumnType) -> String {
    format!("{what} does not fit a {} column", column_type.sql())
}

#[cfg(test)]
mod tests;
