//! Look-ups as JSON text: keys in, rows out.

use std::borrow::Cow;

use serde::Deserialize;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::value::Written;
use super::{Budget, JsonFault, array, cells};
use crate::guest::bindings::RowKey;
use crate::guest::lookups::Found;

/// Parses what a guest gave to `get-json`.
///
/// # Errors
/// When it is no array of keys, or too large.
pub fn keys(text: &str, keys_max: usize, bytes_max: usize) -> Result<Vec<RowKey>, JsonFault> {
    let mut budget = Budget::new(bytes_max);
    array(text, "key", keys_max, |raw| {
        let key: JsonKey<'_> =
            serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
        budget.take(size_of::<RowKey>() + key.table.len())?;
        Ok(RowKey {
            table: key.table.into_owned(),
            key: cells::read(key.key, "key", &mut budget)?,
        })
    })
}

/// The answer to `get-json`: an object of columns for each key, or null.
#[must_use]
pub fn rows(rows: &[Option<Vec<Found>>]) -> String {
    let rows: Vec<Option<Row<'_>>> = rows.iter().map(|row| row.as_deref().map(Row)).collect();
    serde_json::to_string(&rows)
        .expect("texts, numbers and maps with text keys always have a JSON form")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonKey<'a> {
    #[serde(borrow)]
    table: Cow<'a, str>,
    #[serde(borrow)]
    key: &'a RawValue,
}

struct Row<'a>(&'a [Found]);

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for cell in self.0 {
            map.serialize_entry(&*cell.column, &Written(&cell.value))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::bindings::Value;

    #[test]
    fn keys_in_and_rows_out() {
        let found =
            keys(r#"[{"table":"orders","key":{"id":"a","n":1}}]"#, 1, 1_000).expect("valid");
        assert_eq!((found[0].table.as_str(), found[0].key.len()), ("orders", 2));
        let two = r#"[{"table":"t","key":{}},{"table":"t","key":{}}]"#;
        assert!(matches!(
            keys(two, 1, 1_000),
            Err(JsonFault::TooMany { max: 1, .. })
        ));
        assert!(keys(r#"[{"table":"t"}]"#, 1, 1_000).is_err());
        let cell = |column: &str, value| Found {
            column: column.into(),
            value,
        };
        let row = vec![
            cell("a", Value::Int(i64::MAX)),
            cell("b", Value::Float(0.1)),
            cell("c", Value::Bytes(vec![1, 254])),
            cell("d", Value::Texts(vec!["x".into()])),
            cell("e", Value::Null),
            cell("f", Value::Boolean(true)),
            cell("g", Value::Text("\"".into())),
            cell("h", Value::Float(f64::NAN)),
        ];
        assert_eq!(
            rows(&[None, Some(row)]),
            r#"[null,{"a":"9223372036854775807","b":0.1,"c":{"bytes":"01fe"},"d":["x"],"e":null,"f":true,"g":"\"","h":{"float":"NaN"}}]"#
        );
    }
}
