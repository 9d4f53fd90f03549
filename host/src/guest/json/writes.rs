//! The JSON text that an interpreted guest returns, as writes.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Budget, JsonFault, array, cells};
use crate::guest::bindings::{RowKey, Write};
use crate::guest::limits::Limits;
use crate::guest::writes::Kind;

/// Parses what `project-json` returned.
///
/// # Errors
/// When it is no array of writes, or too large; the text names write and column.
pub fn writes(text: &str, limits: &Limits) -> Result<Vec<Write>, JsonFault> {
    let mut budget = Budget::new(limits.output_bytes_max);
    array(text, "write", limits.writes_per_batch_max, |raw| {
        write(raw, &mut budget)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonWrite<'a> {
    event: u32,
    #[serde(borrow)]
    table: Cow<'a, str>,
    op: Kind,
    #[serde(borrow, default)]
    key: Option<&'a RawValue>,
    #[serde(borrow, default)]
    columns: Option<&'a RawValue>,
}

fn write(raw: &RawValue, budget: &mut Budget) -> Result<Write, String> {
    let write: JsonWrite<'_> =
        serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    budget.take(size_of::<Write>() + write.table.len())?;
    let key = match (write.op, write.key) {
        (Kind::RemoveWhere, Some(_)) => return Err("`remove_where` has no `key`".into()),
        (Kind::RemoveWhere, None) => Vec::new(),
        (_, Some(key)) => cells::read(key, "key", budget)?,
        (_, None) => return Err("`key` is missing".into()),
    };
    let columns = match (write.op, write.columns) {
        (Kind::Remove, Some(_)) => return Err("`remove` has no `columns`".into()),
        (Kind::Remove, None) => Vec::new(),
        (_, Some(columns)) => cells::read(columns, "columns", budget)?,
        (_, None) => return Err("`columns` is missing".into()),
    };
    Ok(Write {
        event: write.event,
        target: RowKey {
            table: write.table.into_owned(),
            key,
        },
        change: write.op.of(columns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::bindings::Change;

    fn limits() -> Limits {
        Limits {
            writes_per_batch_max: 3,
            output_bytes_max: 10_000,
            ..Limits::default()
        }
    }

    fn refused(text: &str, part: &str) {
        let fault = writes(text, &limits()).expect_err(text).to_string();
        assert!(fault.contains(part), "{fault}");
    }

    #[test]
    fn every_kind_of_write_is_read() {
        let text = r#"[
            {"event":0,"table":"orders","op":"put","key":{"id":"a"},"columns":{"total":"1.50","n":3}},
            {"event":1,"table":"orders","op":"remove","key":{"id":"a"}},
            {"event":1,"table":"items","op":"remove_where","columns":{"order_id":"a"}}
        ]"#;
        let found = writes(text, &limits()).expect("valid");
        assert_eq!(found.len(), 3);
        assert!(matches!(&found[0].change, Change::Put(cells) if cells.len() == 2));
        assert!(matches!(found[1].change, Change::Remove));
        assert!(found[2].target.key.is_empty());
        for op in ["insert", "merge", "patch", "add"] {
            let text =
                format!(r#"[{{"event":0,"table":"t","op":"{op}","key":{{}},"columns":{{}}}}]"#);
            assert_eq!(writes(&text, &limits()).expect("valid").len(), 1);
        }
    }

    #[test]
    fn faults_name_write_and_column() {
        refused("{}", "array of writes");
        refused("[] x", "trailing");
        refused("[1]", "write 0: ");
        let good = r#"{"event":0,"table":"t","op":"remove","key":{}}"#;
        refused(&format!("[{good},{{}}]"), "write 1: missing field `event`");
        refused(
            &format!("[{good},{good},{good},{good}]"),
            "more than 3 writes",
        );
        refused(
            r#"[{"event":0,"table":"t","op":"upsert","key":{}}]"#,
            "unknown variant `upsert`",
        );
        refused(
            r#"[{"event":0,"table":"t","op":"put","key":{}}]"#,
            "`columns` is missing",
        );
        refused(
            r#"[{"event":0,"table":"t","op":"put","columns":{}}]"#,
            "`key` is missing",
        );
        refused(
            r#"[{"event":-1,"table":"t","op":"put","columns":{}}]"#,
            "write 0: invalid value",
        );
        refused(
            r#"[{"event":0,"table":"t","op":"merge","key":{},"columns":{"a":1,"total":[1]}}]"#,
            "`columns.total`",
        );
        refused(
            r#"[{"event":0,"table":"t","op":"merge","key":{},"columns":{"a":1,"a":2}}]"#,
            "`a` twice",
        );
    }

    #[test]
    fn a_small_text_cannot_become_large_in_memory() {
        let many = format!(
            r#"[{{"event":0,"table":"t","op":"put","key":{{}},"columns":{{{}"z":0}}}}]"#,
            r#""":0,"#.repeat(1_500)
        );
        assert!(many.len() < 10_000);
        refused(&many, "output_bytes_max");
        let texts = format!(
            r#"[{{"event":0,"table":"t","op":"put","key":{{}},"columns":{{"a":[{}""]}}}}]"#,
            r#""","#.repeat(2_000)
        );
        assert!(texts.len() < 10_000);
        refused(&texts, "output_bytes_max");
    }

    #[test]
    fn depth_is_bounded_and_brackets_in_texts_do_not_count() {
        assert_eq!(
            writes(&"[".repeat(1_000_000), &Limits::default()).err(),
            Some(JsonFault::Depth)
        );
        let flat = format!(
            r#"[{{"event":0,"table":"t","op":"put","key":{{}},"columns":{{"a":"{}\""}}}}]"#,
            "[".repeat(500)
        );
        assert_eq!(writes(&flat, &limits()).expect("valid").len(), 1);
    }
}
