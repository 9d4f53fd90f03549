//! Reading a word of a closed list; the code behind [`words!`](crate::words).

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};

/// Reads one of `words`; any other text is an error that names it and them.
pub fn word<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    words: &'static [&'static str],
    from_word: fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    struct Word<T> {
        words: &'static [&'static str],
        from_word: fn(&str) -> Option<T>,
    }

    impl<T> Visitor<'_> for Word<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "one of {}", self.words.join(", "))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            (self.from_word)(text).ok_or_else(|| E::unknown_variant(text, self.words))
        }
    }

    deserializer.deserialize_str(Word { words, from_word })
}
