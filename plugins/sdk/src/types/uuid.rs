//! Identifiers: read in any case, written in lower case.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A UUID. Its text form is always lower-case with dashes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// A UUID from its sixteen bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its sixteen bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Reads the form with dashes, `8-4-4-4-12` hex digits in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text: &[u8; 36] = text.as_bytes().try_into().ok()?;
        let mut digits = [0; 32];
        let mut at = 0;
        for (place, &byte) in text.iter().enumerate() {
            if matches!(place, 8 | 13 | 18 | 23) {
                if byte != b'-' {
                    return None;
                }
            } else {
                digits[at] = byte;
                at += 1;
            }
        }
        Self::from_digits(&digits)
    }

    /// Reads the form without dashes: exactly 32 hex digits in any case.
    #[must_use]
    pub fn parse_simple(text: &str) -> Option<Self> {
        Self::from_digits(text.as_bytes().try_into().ok()?)
    }

    fn from_digits(digits: &[u8; 32]) -> Option<Self> {
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [b'-'; 36];
        let mut at = 0;
        for (place, byte) in self.0.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                at += 1;
            }
            text[at] = HEX[usize::from(byte >> 4)];
            text[at + 1] = HEX[usize::from(byte & 15)];
            at += 2;
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<'de> Deserialize<'de> for Uuid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Uuid;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a UUID")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Uuid, E> {
                Uuid::parse(text)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::Uuid;

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(
            Uuid::parse(text).map(|uuid| uuid.to_string()).as_deref(),
            expected,
            "{text}"
        );
    }

    #[test]
    fn any_case_is_read_and_lower_case_written() {
        let lower = "0a1b2c3d-4e5f-6789-abcd-ef0123456789";
        check(lower, Some(lower));
        check(&lower.to_uppercase(), Some(lower));
        assert_eq!(
            Uuid::parse_simple(&lower.to_uppercase().replace('-', ""))
                .map(|uuid| uuid.to_string())
                .as_deref(),
            Some(lower)
        );
    }

    #[test]
    fn other_texts_are_no_uuid() {
        for text in [
            "",
            "0a1b2c3d4e5f6789abcdef0123456789",
            "0a1b2c3d-4e5f-6789-abcd-ef012345678",
            "0a1b2c3d-4e5f-6789-abcd-ef01234567890",
            "0a1b2c3d-4e5f-6789-abcd-ef012345678g",
            "0a1b2c3d_4e5f-6789-abcd-ef0123456789",
            "{0a1b2c3d-4e5f-6789-abcd-ef012345678}",
            "0a1b2c3d-4e5f-6789-abcd-ef01234567é9",
        ] {
            check(text, None);
        }
    }
}
