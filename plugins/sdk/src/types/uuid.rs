//! Identifiers: read in any case, written in lower case.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::contract::Text;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Where the digits of each byte stand in the form with dashes.
const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

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
        if [text[8], text[13], text[18], text[23]] != *b"----" {
            return None;
        }
        Self::from_digits(text, &PLACES)
    }

    /// Reads the form without dashes: exactly 32 hex digits in any case.
    #[must_use]
    pub fn parse_simple(text: &str) -> Option<Self> {
        const PLACES: [usize; 16] = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30];
        let text: &[u8; 32] = text.as_bytes().try_into().ok()?;
        Self::from_digits(text, &PLACES)
    }

    /// Lower-case with dashes, made without the detours of formatting: every row has several.
    pub(crate) fn to_text(self) -> Text {
        let mut text = [b'-'; 36];
        self.write(&mut text);
        Text::ascii(&text)
    }

    fn write(self, text: &mut [u8; 36]) {
        for (byte, place) in self.0.iter().zip(PLACES) {
            [text[place], text[place + 1]] = PAIRS[usize::from(*byte)];
        }
    }

    /// Whether no other text would be made of this one: it is canonical, or no UUID at all. Eight bytes at a time,
    /// since every key has several.
    pub(crate) fn is_final(text: &str) -> bool {
        /// Set in small letters, digits and dashes.
        const SMALL: u64 = 0x2020_2020_2020_2020;
        let (words, rest) = text.as_bytes().as_chunks::<8>();
        // Without dashes it is shorter.
        text.len() != 32
            && words
                .iter()
                .all(|word| u64::from_le_bytes(*word) & SMALL == SMALL)
            && rest.iter().all(|byte| byte & 0x20 != 0)
    }

    /// Inlined, so that the places are known to the compiler.
    #[inline(always)]
    fn from_digits<const N: usize>(text: &[u8; N], places: &[usize; 16]) -> Option<Self> {
        let mut bytes = [0; 16];
        let mut seen = 0;
        for (byte, &place) in bytes.iter_mut().zip(places) {
            let high = DIGITS[usize::from(text[place])];
            let low = DIGITS[usize::from(text[place + 1])];
            seen |= high | low;
            *byte = high << 4 | low & 15;
        }
        // A digit's value has no bit above the lowest four.
        (seen < 16).then_some(Self(bytes))
    }
}

/// The two digits of each byte.
static PAIRS: [[u8; 2]; 256] = {
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [HEX[byte >> 4], HEX[byte & 15]];
        byte += 1;
    }
    pairs
};

/// The value of each hex digit; [`NO_DIGIT`] for every other byte.
static DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        let digit = HEX[value as usize];
        digits[digit as usize] = value;
        digits[digit.to_ascii_uppercase() as usize] = value;
        value += 1;
    }
    digits
};

const NO_DIGIT: u8 = 0xff;

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [b'-'; 36];
        self.write(&mut text);
        f.write_str(&String::from_utf8_lossy(&text))
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
        if let Some(expected) = expected {
            assert_eq!(Uuid::is_final(text), expected == text, "{text}");
        }
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
