//! Column values and how Rust types become them.

use crate::types::{Integer, Timestamp, Uuid};

pub use crate::bindings::projector::projection::types::Value;

impl Value {
    /// A whole number of any size, for `add` on a column of 64 bits: the difference of two amounts may be
    /// larger than each of them.
    #[must_use]
    pub fn whole(number: i128) -> Self {
        match i64::try_from(number) {
            Ok(number) => Self::Int(number),
            Err(_) => Self::Other(("numeric".to_owned(), number.to_string())),
        }
    }

    /// Whether it is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
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
    &str, value => Self::Text(value.to_owned());
    String, value => Self::Text(value);
    &String, value => Self::Text(value.clone());
    Vec<u8>, value => Self::Bytes(value);
    Vec<String>, value => Self::Texts(value);
    Integer, value => Self::Int(value.0);
    Uuid, value => Self::Text(value.to_text());
    Timestamp, value => Self::Text(value.to_text());
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
