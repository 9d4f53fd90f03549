//! Whole numbers, read exactly from any JSON spelling of them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::value::RawValue;

use super::Decimal;

/// A whole number of 64 bits in an event's JSON: `19900`, and also `19900.0` and `1.99e4`, which producers in
/// other languages write. A fraction, a text or a number beyond 64 bits is an error; nothing is rounded.
///
/// It reads JSON only; in a type that is made from a [`Row`](crate::Row), take `i64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Integer(pub i64);

impl Integer {
    /// Reads the text of a JSON number.
    #[must_use]
    pub fn parse(json: &str) -> Option<Self> {
        if let Ok(number) = json.parse() {
            return Some(Self(number));
        }
        Decimal::parse(json)?.to_i64().map(Self)
    }
}

impl From<Integer> for i64 {
    fn from(number: Integer) -> Self {
        number.0
    }
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        Self::parse(json).ok_or_else(|| {
            let found = match json.as_bytes().first() {
                Some(b'"') => "a text",
                Some(b'{') => "an object",
                Some(b'[') => "a list",
                Some(b't' | b'f') => "a boolean",
                Some(b'n') => "null",
                _ => json.get(..40).unwrap_or(json),
            };
            D::Error::custom(format_args!(
                "expected a whole number of 64 bits, found {found}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Integer;

    fn check(json: &str, expected: Option<i64>) {
        let found = serde_json::from_str::<Integer>(json)
            .ok()
            .map(|number| number.0);
        assert_eq!(found, expected, "{json}");
    }

    #[test]
    fn every_spelling_of_a_whole_number_is_read_exactly() {
        check("0", Some(0));
        check("-0", Some(0));
        check("-0.0", Some(0));
        check("0e99999999999999999999", Some(0));
        check("19900.0", Some(19_900));
        check("1.99e4", Some(19_900));
        check("1.99E+4", Some(19_900));
        check("1990000e-2", Some(19_900));
        check("9007199254740993.0", Some(9_007_199_254_740_993));
        check("9223372036854775807", Some(i64::MAX));
        check("-9.223372036854775808e18", Some(i64::MIN));
    }

    #[test]
    fn fractions_texts_and_larger_numbers_are_refused() {
        for json in [
            "0.5",
            "19900.00000000000001",
            "1e-1",
            "9223372036854775808",
            "9223372036854775808.0",
            "1e400",
            "1e99999999999999999999",
            "\"19900\"",
            "true",
            "null",
            "[1]",
            "{}",
        ] {
            check(json, None);
        }
    }
}
