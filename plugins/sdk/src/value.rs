//! Column values and how Rust types become them.

use crate::contract::{List, Text};
use crate::types::{Integer, Timestamp, Uuid};

/// A column value. The host converts text to the column's type.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, u8)]
pub enum Value {
    /// No value.
    Null,
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text, for columns of every type but `text[]`.
    Text(Text),
    /// Bytes.
    Bytes(List<u8>),
    /// A list of texts.
    Texts(List<Text>),
    /// The position of the write's event, which the host fills in.
    Position,
    /// A PostgreSQL type and a text form, for what the cases above cannot carry.
    Other(Text, Text),
}

impl Value {
    /// A whole number of any size, for `add` on a column of 64 bits: the difference of two amounts may be
    /// larger than each of them.
    #[must_use]
    pub fn whole(number: i128) -> Self {
        match i64::try_from(number) {
            Ok(number) => Self::Int(number),
            Err(_) => Self::Other(Text::new("numeric"), number.to_string().into()),
        }
    }

    /// Whether it is null.
    #[must_use]
    pub fn is_null(self) -> bool {
        matches!(self, Self::Null)
    }
}

macro_rules! from {
    ($($from:ty, $value:ident => $into:expr;)*) => {$(
        impl From<$from> for Value {
            fn from($value: $from) -> Self {
                $into
            }
        }
    )*};
}

from! {
    bool, value => Self::Boolean(value);
    i32, value => Self::Int(value.into());
    u32, value => Self::Int(value.into());
    i64, value => Self::Int(value);
    f64, value => Self::Float(value);
    &str, value => Self::Text(Text::copy(value));
    String, value => Self::Text(value.into());
    &String, value => Self::Text(Text::copy(value));
    Text, value => Self::Text(value);
    Vec<u8>, value => Self::Bytes(value.into());
    Vec<String>, value => Self::Texts(value.into_iter().map(Text::from).collect::<Vec<_>>().into());
    Integer, value => Self::Int(value.0);
    Uuid, value => Self::Text(value.to_text());
    Timestamp, value => Self::Text(value.to_text());
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
