//! Whether PostgreSQL's jsonb can hold a JSON text that is already known to be well formed.
//!
//! jsonb refuses U+0000, lone surrogates, numbers beyond its numeric type, very deep nesting and very large
//! values. Looking for them here lets the message name the field or column. Events and columns have the same rule, so
//! what was appended can be written to a jsonb column.

/// Deepest nesting of arrays and objects. Far below what the server's stack holds by default, which depends on its
/// settings.
pub const DEPTH_MAX: usize = 1000;

/// Longest text. A number of one digit and its comma take six times as much in jsonb, which holds 256 MiB.
pub const BYTES_MAX: usize = 32 << 20;

/// Most digits before and after the point that PostgreSQL's numeric holds.
const DIGITS_BEFORE_MAX: i64 = 131_072;
const DIGITS_AFTER_MAX: i64 = 16_383;

/// Why jsonb cannot hold the text, as a sentence part that follows the field's name; none when it can.
#[must_use]
pub fn fault(text: &str) -> Option<String> {
    if text.len() > BYTES_MAX {
        return Some(format!(
            "has {} bytes of JSON; at most {BYTES_MAX} are allowed",
            text.len()
        ));
    }
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut depth = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => match string(bytes, at + 1) {
                Ok(end) => at = end,
                Err(text) => return Some(text.to_owned()),
            },
            b'-' | b'0'..=b'9' => {
                let end = bytes[at..]
                    .iter()
                    .position(|b| !matches!(b, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
                    .map_or(bytes.len(), |length| at + length);
                if !fits_numeric(&text[at..end]) {
                    let shown: String = text[at..end].chars().take(40).collect();
                    return Some(format!(
                        "has the number {shown}, which PostgreSQL cannot hold"
                    ));
                }
                at = end;
            }
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return Some(format!("is nested deeper than {DEPTH_MAX} levels"));
                }
                at += 1;
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            _ => at += 1,
        }
    }
    None
}

/// Walks a string from behind its opening quote to behind its closing one.
fn string(bytes: &[u8], mut at: usize) -> Result<usize, &'static str> {
    const LONE: &str = "has half of a surrogate pair (\\uD800 to \\uDFFF) in a text";
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return Ok(at + 1),
            b'\\' if bytes.get(at + 1) == Some(&b'u') => {
                match unit(bytes, at) {
                    0 => {
                        return Err(
                            "has the character U+0000 in a text, which PostgreSQL cannot hold",
                        );
                    }
                    0xD800..=0xDBFF => {
                        let follows = bytes.get(at + 6..at + 8) == Some(b"\\u")
                            && matches!(unit(bytes, at + 6), 0xDC00..=0xDFFF);
                        if !follows {
                            return Err(LONE);
                        }
                        at += 6;
                    }
                    0xDC00..=0xDFFF => return Err(LONE),
                    _ => {}
                }
                at += 6;
            }
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    Ok(at)
}

/// The number of the escape `\uXXXX` at a place.
fn unit(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at + 2..at + 6)
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .unwrap_or(0xFFFD)
}

fn fits_numeric(number: &str) -> bool {
    let number = number.trim_start_matches('-');
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let Ok(exponent) = exponent.parse::<i32>().map(i64::from) else {
        return false;
    };
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX / 4);
    let after = length(fraction) - exponent;
    let zeros = whole
        .bytes()
        .chain(fraction.bytes())
        .take_while(|&digit| digit == b'0')
        .count();
    let nothing_else = zeros == whole.len() + fraction.len();
    let before = length(whole) - i64::try_from(zeros).unwrap_or(0) + exponent;
    // An exponent of a billion is refused even for zero.
    exponent.abs() < 1_000_000_000
        && after <= DIGITS_AFTER_MAX
        && (nothing_else || before <= DIGITS_BEFORE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_jsonb_cannot_hold_is_found() {
        for good in [
            r#"{"a":[1,-2.5e3,"\\u0000","é😀\ud83d\ude00\n\"", null]}"#,
            "1e131071",
            "9.9e131071",
            "0e131072",
            "1e-16383",
            "123456789012345678901234567890.123456789",
            r#""\\\\""#,
        ] {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in [
            r#""\u0000""#,
            r#"{"\u0000":1}"#,
            r#"["\\\u0000"]"#,
            r#""\ud800""#,
            r#""\ud800\n\udc00""#,
            r#""\ude00\ud83d""#,
            r#""\ud83dx""#,
            "1e131072",
            "[10e131071]",
            "1e-16384",
            "1e99999999999",
            r#"{"a":0.1e-16383}"#,
        ] {
            assert!(fault(bad).is_some(), "{bad}");
        }
        assert_eq!(fault(&"[".repeat(DEPTH_MAX)), None);
        assert!(fault(&"[".repeat(DEPTH_MAX + 1)).is_some());
    }
}
