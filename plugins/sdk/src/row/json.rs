//! A row as JSON text.

use std::io::Write as _;

use super::Row;
use crate::description::ColumnType;
use crate::value::Value;

pub(super) fn write(row: &Row, keep: impl Fn(&str) -> bool) -> String {
    let mut out = Vec::with_capacity(64 * row.values.len());
    out.push(b'{');
    for (column, value) in row.table.columns.iter().zip(&row.values) {
        if !keep(&column.name) {
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        write_text(&column.name, &mut out);
        out.push(b':');
        write_value(column.column_type, value, &mut out);
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

fn write_value(column_type: ColumnType, value: &Value, out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = match value {
        Value::Null | Value::Position => out.write_all(b"null"),
        Value::Boolean(value) => write!(out, "{value}"),
        Value::Int(number) => write!(out, "{number}"),
        // JSON knows no infinity and no NaN.
        Value::Float(number) if number.is_finite() => write!(out, "{number:?}"),
        Value::Float(number) => write!(out, "\"{number}\""),
        Value::Text(text) | Value::Other(_, text) => match column_type {
            ColumnType::Jsonb | ColumnType::Numeric | ColumnType::BigInt if is_json(text) => {
                out.write_all(text.as_bytes())
            }
            _ => {
                write_text(text, out);
                Ok(())
            }
        },
        Value::Bytes(bytes) => {
            let _ = out.write_all(b"\"\\\\x");
            for byte in bytes {
                let _ = write!(out, "{byte:02x}");
            }
            out.write_all(b"\"")
        }
        Value::Texts(texts) => {
            out.push(b'[');
            for (place, text) in texts.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write_text(text, out);
            }
            out.write_all(b"]")
        }
    };
}

/// False for a numeric NaN and for values that do not fit their column, which the host refuses.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Text in JSON's quotes.
fn write_text(text: &str, out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::write_text;

    #[test]
    fn text_is_escaped_as_a_parser_expects() {
        for text in [
            "",
            "plain",
            "quote \" back \\ slash",
            "\u{0}\u{1f}\n\r\t",
            "客户 😀 é",
            "end\\",
        ] {
            let mut out = Vec::new();
            write_text(text, &mut out);
            assert_eq!(
                serde_json::from_slice::<String>(&out).ok().as_deref(),
                Some(text),
                "{out:?}"
            );
        }
    }
}
