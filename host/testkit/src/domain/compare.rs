//! Tables as they must stand against tables as they are; names the first difference.

use std::collections::BTreeMap;

use serde_json::Value;

use super::table::{Kind, Layout, Row, Table};

impl Layout {
    /// SQL that gives each row as one JSON object a line: times with six digits, JSON as text so that its own null is
    /// told from SQL's.
    pub fn select(&self, schema: &str) -> String {
        let cells = self.columns.iter().map(|(column, kind)| {
            let cell = match kind {
                Kind::Plain => format!("{column}::text"),
                Kind::Time => {
                    format!(
                        "to_char({column} at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
                    )
                }
                Kind::Json => format!("{column}::text"),
            };
            format!("'{column}', {cell}")
        });
        let cells: Vec<String> = cells.collect();
        format!(
            "select json_build_object({}) from {schema}.{}",
            cells.join(", "),
            self.name
        )
    }

    fn key_of(&self, row: &Row) -> Vec<String> {
        self.key
            .iter()
            .map(|column| plain(row.get(*column)))
            .collect()
    }

    fn is_zero(&self, row: &Row) -> bool {
        self.zero
            .is_some_and(|column| plain(row.get(column)) == "0")
    }
}

/// Compares a table with rows that [`Layout::select`] gave.
///
/// # Errors
/// The first difference, in the order of the keys.
pub fn compare(expected: &Table, found: &[Row]) -> Result<(), String> {
    let layout = expected.layout;
    let by_key = |rows: &[Row]| -> BTreeMap<Vec<String>, Row> {
        let there = rows.iter().filter(|row| !layout.is_zero(row));
        there.map(|row| (layout.key_of(row), row.clone())).collect()
    };
    let (expected, found) = (by_key(&expected.rows), by_key(found));
    let keys: std::collections::BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    for key in keys {
        let place = format!("{} {}", layout.name, key.join(" / "));
        match (expected.get(key), found.get(key)) {
            (Some(expected), Some(found)) => {
                for (column, kind) in layout.columns {
                    let (expected, found) = (expected.get(*column), found.get(*column));
                    difference(*kind, expected, found).map_or(Ok(()), |words| {
                        Err(format!("{place}, column {column}: {words}"))
                    })?;
                }
            }
            (Some(expected), None) => {
                return Err(format!(
                    "{place}: the row is missing; it should be {expected:?}"
                ));
            }
            (None, found) => {
                return Err(format!(
                    "{place}: there should be no row, but there is {found:?}"
                ));
            }
        }
    }
    Ok(())
}

/// How two cells differ, if they do.
pub fn difference(kind: Kind, expected: Option<&Value>, found: Option<&Value>) -> Option<String> {
    let equal = match (kind, expected, found) {
        (Kind::Json, Some(expected @ Value::Object(_)), Some(Value::String(found))) => {
            serde_json::from_str::<Value>(found).is_ok_and(|found| found == *expected)
        }
        (_, None | Some(Value::Null), None | Some(Value::Null)) => true,
        (_, None | Some(Value::Null), _) | (_, _, None | Some(Value::Null)) => false,
        (_, expected, found) => plain(expected) == plain(found),
    };
    (!equal).then(|| format!("expected {expected:?}, found {found:?}"))
}

fn plain(cell: Option<&Value>) -> String {
    match cell {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::{Event, fold};

    fn event(position: i64, kind: &str, data: Value) -> Event {
        Event {
            position,
            kind: kind.into(),
            data,
        }
    }

    fn created() -> Event {
        event(
            7,
            "ServiceRequestCreated",
            json!({
                "merchant_id": "0A1B2C3D-4e5f-6789-abcd-ef0123456789",
                "request_uuid": "11111111-2222-3333-4444-555555555555",
                "customer_uuid": "11111111-2222-3333-4444-555555555555",
                "creator_uuid": "11111111-2222-3333-4444-555555555555",
                "service_content": "windows", "status": "new", "source": "phone",
                "inserted_at": "2026-03-01T08:30:00Z", "updated_at": "2026-03-01T08:30:00Z",
            }),
        )
    }

    #[test]
    fn one_wrong_cell_one_row_too_many_and_one_missing_are_found() {
        let tables = fold("service-request", &[created()], i64::MAX).expect("it is legal");
        let requests = &tables[0];
        let as_found: Row = requests.rows[0]
            .iter()
            .map(|(column, cell)| {
                (
                    column.clone(),
                    if cell.is_null() {
                        Value::Null
                    } else {
                        plain(Some(cell)).into()
                    },
                )
            })
            .collect();
        assert_eq!(compare(requests, std::slice::from_ref(&as_found)), Ok(()));

        let mut wrong = as_found.clone();
        wrong.insert("notes".into(), "".into());
        let text =
            compare(requests, std::slice::from_ref(&wrong)).expect_err("null is no empty text");
        assert!(text.contains("column notes"), "{text}");

        assert!(
            compare(requests, &[])
                .expect_err("the row is missing")
                .contains("missing")
        );
        let mut other = as_found.clone();
        other.insert(
            "request_uuid".into(),
            "99999999-2222-3333-4444-555555555555".into(),
        );
        assert!(
            compare(requests, &[as_found, other])
                .expect_err("one too many")
                .contains("no row")
        );
    }

    #[test]
    fn a_json_null_is_no_sql_null_and_numbers_are_exact() {
        let check = |expected: Value, found: Value, equal: bool| {
            let words = difference(Kind::Json, Some(&expected), Some(&found));
            assert_eq!(words.is_none(), equal, "{words:?}");
        };
        check(Value::Null, Value::Null, true);
        check(Value::Null, json!("null"), false);
        check(
            json!({"a": i64::MAX}),
            json!("{\"a\": 9223372036854775807}"),
            true,
        );
        check(json!({"a": 19_900}), json!("{\"a\": 19900.0}"), false);
    }

    #[test]
    fn an_unknown_status_is_poison_also_without_a_row() {
        let data = json!({
            "merchant_id": "0a1b2c3d-4e5f-6789-abcd-ef0123456789",
            "request_uuid": "11111111-2222-3333-4444-555555555555",
            "status": "lost", "updated_at": "2026-03-01T08:30:00Z",
        });
        let poison = fold(
            "service-request",
            &[event(3, "ServiceRequestStatusChanged", data)],
            9,
        );
        assert_eq!(poison.expect_err("the word is not known").position, 3);
    }
}
