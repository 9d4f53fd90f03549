//! A row as a type of the plugin's own, through serde.

use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::Row;
use crate::description::ColumnType;
use crate::value::Value;

pub(super) fn read<T: DeserializeOwned>(row: &Row) -> Result<T, Error> {
    let columns = row
        .table
        .columns
        .iter()
        .zip(&row.values)
        .map(|(column, value)| {
            let field = Field {
                column: column.name.as_str(),
                column_type: column.column_type,
                value,
            };
            (column.name.as_str(), field)
        });
    T::deserialize(MapDeserializer::new(columns))
}

/// The value of one column.
#[derive(Clone, Copy)]
struct Field<'row> {
    column: &'row str,
    column_type: ColumnType,
    value: &'row Value,
}

impl Field<'_> {
    fn named(&self, error: impl std::fmt::Display) -> Error {
        Error::custom(format_args!("column `{}`: {error}", self.column))
    }
}

impl<'de> IntoDeserializer<'de> for Field<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Field<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let visited: Result<V::Value, Error> = match self.value {
            Value::Null | Value::Position => visitor.visit_unit(),
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::Int(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Text(text) | Value::Other(_, text) if self.column_type == ColumnType::Jsonb => {
                return serde_json::Deserializer::from_str(text)
                    .deserialize_any(visitor)
                    .map_err(|error| self.named(error));
            }
            Value::Text(text) | Value::Other(_, text) => visitor.visit_borrowed_str(text),
            Value::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            Value::Texts(texts) => {
                visitor.visit_seq(SeqDeserializer::new(texts.iter().map(|text| text.as_str())))
            }
        };
        visited.map_err(|error| self.named(error))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.value {
            Value::Text(text) | Value::Other(_, text) if self.column_type != ColumnType::Jsonb => {
                let text: serde::de::value::StrDeserializer<'_, Error> =
                    text.as_str().into_deserializer();
                text.deserialize_enum(name, variants, visitor)
                    .map_err(|error| self.named(error))
            }
            Value::Text(text) | Value::Other(_, text) => serde_json::Deserializer::from_str(text)
                .deserialize_enum(name, variants, visitor)
                .map_err(|error| self.named(error)),
            _ => Err(self.named("expected a word")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}
