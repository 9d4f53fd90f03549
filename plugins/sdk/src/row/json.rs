//! A row as JSON text.

use std::fmt::Write as _;

use super::Row;
use crate::description::ColumnType;
use crate::json::special;
use crate::value::Value;

pub(super) fn write(row: &Row, keep: impl Fn(&str) -> bool) -> String {
    let mut out = String::with_capacity(64 * row.values.len());
    out.push('{');
    for (column, value) in row.table.columns.iter().zip(&row.values) {
        if !keep(&column.name) {
            continue;
        }
        if out.len() > 1 {
            out.push(',');
        }
        write_text(&column.name, &mut out);
        out.push(':');
        write_value(column.column_type, value, &mut out);
    }
    out.push('}');
    out
}

fn write_value(column_type: ColumnType, value: &Value, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match value {
        Value::Null | Value::Position => {
            out.push_str("null");
            Ok(())
        }
        Value::Boolean(value) => write!(out, "{value}"),
        Value::Int(number) => write!(out, "{number}"),
        // JSON knows no infinity and no NaN.
        Value::Float(number) if number.is_finite() => write!(out, "{number:?}"),
        Value::Float(number) => write!(out, "\"{number}\""),
        Value::Text(text) | Value::Other(_, text) => match column_type {
            ColumnType::Jsonb | ColumnType::Numeric | ColumnType::BigInt if is_json(text) => {
                out.write_str(text)
            }
            _ => {
                write_text(text, out);
                Ok(())
            }
        },
        Value::Bytes(bytes) => {
            out.push_str("\"\\\\x");
            for byte in bytes {
                let _ = write!(out, "{byte:02x}");
            }
            out.write_char('"')
        }
        Value::Texts(texts) => {
            out.push('[');
            for (place, text) in texts.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write_text(text, out);
            }
            out.write_char(']')
        }
    };
}

/// False for a numeric NaN and for values that do not fit their column, which the host refuses.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Text in JSON's quotes.
fn write_text(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    loop {
        let plain = special(rest.as_bytes());
        let (before, after) = rest.split_at(plain);
        out.push_str(before);
        let Some(&byte) = after.as_bytes().first() else {
            break;
        };
        rest = &after[1..];
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            _ => {
                let _ = write!(out, "\\u{byte:04x}");
            }
        }
    }
    out.push('"');
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
            let mut out = String::new();
            write_text(text, &mut out);
            assert_eq!(
                serde_json::from_str::<String>(&out).ok().as_deref(),
                Some(text),
                "{out}"
            );
        }
    }
}
