//! Reads the JSON of payloads that hold nothing unusual, quickly.
//!
//! Owns: the way that nearly every payload takes. Promises: what it reads, `serde_json` would read to the same; where
//! it is in doubt, or anything is wrong, it says nothing, and `serde_json` has the word. Must never: explain an error
//! or accept what `serde_json` refuses.

#[cfg(test)]
mod tests;
mod text;

use std::fmt;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use text::Cursor;
pub(crate) use text::special;

/// Lists and objects in each other, beyond which it does not go; `serde_json` goes further.
const DEPTH_MAX: usize = 32;

/// The names under which `serde_json` asks for something of its own, such as a value's text.
const OWN_NAMES: &str = "$serde_json::";

/// The object that is the whole text; `None` when `serde_json` must judge.
pub(crate) fn object<'de, T: Deserialize<'de>>(text: &'de str) -> Option<T> {
    let mut reader = Reader {
        cursor: Cursor::new(text),
        depth: 0,
    };
    if reader.cursor.peek_token() != Some(b'{') {
        return None;
    }
    let value = T::deserialize(&mut reader).ok()?;
    reader.cursor.peek_token().is_none().then_some(value)
}

/// Something is wrong or unusual. What it is, nobody asks.
#[derive(Debug)]
struct Unusual;

impl fmt::Display for Unusual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unusual")
    }
}

impl std::error::Error for Unusual {}

impl Error for Unusual {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

type Read<T> = Result<T, Unusual>;

struct Reader<'de> {
    cursor: Cursor<'de>,
    depth: usize,
}

impl<'de> Reader<'de> {
    /// Reads what stands between brackets, and the bracket that closes it.
    #[inline]
    fn nested<T>(&mut self, close: u8, read: impl FnOnce(Items<'_, 'de>) -> Read<T>) -> Read<T> {
        self.cursor.skip(1);
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Unusual);
        }
        let value = read(Items {
            reader: self,
            close,
            is_first: true,
        })?;
        self.depth -= 1;
        if self.cursor.peek_token() != Some(close) {
            return Err(Unusual);
        }
        self.cursor.skip(1);
        Ok(value)
    }

    /// Text in quotes.
    #[inline]
    fn string<V: Visitor<'de>>(&mut self, visitor: V) -> Read<V::Value> {
        match self.cursor.plain_string() {
            Some(text) => visitor.visit_borrowed_str(text),
            None => {
                let quoted = self.cursor.string().ok_or(Unusual)?;
                let text: String = serde_json::from_str(quoted).map_err(|_| Unusual)?;
                visitor.visit_string(text)
            }
        }
    }

    /// A number, with `serde_json` for all but the simplest.
    #[inline]
    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Read<V::Value> {
        let text = self.cursor.number();
        match plain_number(text) {
            Some(number) => visitor.visit_u64(number),
            None => {
                let mut number = serde_json::Deserializer::from_str(text);
                let value = number.deserialize_any(visitor).map_err(|_| Unusual)?;
                number.end().map_err(|_| Unusual)?;
                Ok(value)
            }
        }
    }

    /// For what is rare and read by rules of its own.
    fn unusual<V: Visitor<'de>>(&mut self, _: V) -> Read<V::Value> {
        Err(Unusual)
    }

    #[inline]
    fn word<T>(&mut self, word: &str, value: T) -> Read<T> {
        if self.cursor.take(word) {
            Ok(value)
        } else {
            Err(Unusual)
        }
    }
}

/// A whole number of few digits, as nearly all are.
#[inline]
fn plain_number(text: &str) -> Option<u64> {
    let digits = text.as_bytes();
    if digits.is_empty() || digits.len() > 18 || digits[0] == b'0' && digits.len() > 1 {
        return None;
    }
    digits.iter().try_fold(0, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| number * 10 + u64::from(digit))
    })
}

/// Types that are read from what begins so, and from nothing else.
macro_rules! only {
    ($($($method:ident),+: $first:pat => $read:ident;)+) => {$($(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
            match self.cursor.peek_token() {
                Some($first) => self.$read(visitor),
                _ => Err(Unusual),
            }
        }
    )+)+};
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Unusual;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.cursor.peek_token() {
            Some(b'"') => self.string(visitor),
            Some(b'0'..=b'9' | b'-') => self.number(visitor),
            Some(b'n') => self.word("null", ()).and_then(|()| visitor.visit_unit()),
            Some(b't') => self
                .word("true", ())
                .and_then(|()| visitor.visit_bool(true)),
            Some(b'f') => self
                .word("false", ())
                .and_then(|()| visitor.visit_bool(false)),
            Some(b'{') => self.nested(b'}', |items| visitor.visit_map(items)),
            Some(b'[') => self.nested(b']', |items| visitor.visit_seq(items)),
            _ => Err(Unusual),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        if self.cursor.peek_token() == Some(b'n') {
            self.word("null", ()).and_then(|()| visitor.visit_none())
        } else {
            visitor.visit_some(self)
        }
    }

    /// What `serde_json` asks for under a name of its own it gets from itself.
    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Read<V::Value> {
        if !name.starts_with(OWN_NAMES) {
            return visitor.visit_newtype_struct(self);
        }
        self.cursor.peek_token();
        let place = self.cursor.place();
        IgnoredAny::deserialize(&mut *self)?;
        serde_json::Deserializer::from_str(self.cursor.since(place))
            .deserialize_newtype_struct(name, visitor)
            .map_err(|_| Unusual)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        match self.cursor.peek_token() {
            Some(b'"') => {
                let word = self.cursor.plain_string().ok_or(Unusual)?;
                let word: BorrowedStrDeserializer<'de, Unusual> =
                    BorrowedStrDeserializer::new(word);
                word.deserialize_enum(name, variants, visitor)
            }
            _ => Err(Unusual),
        }
    }

    only! {
        deserialize_str, deserialize_string, deserialize_identifier, deserialize_char: b'"' => string;
        deserialize_i8, deserialize_i16, deserialize_i32, deserialize_i64, deserialize_u8, deserialize_u16,
        deserialize_u32, deserialize_u64, deserialize_f32, deserialize_f64: b'0'..=b'9' | b'-' => number;
        deserialize_bool: b't' | b'f' => deserialize_any;
        deserialize_unit: b'n' => deserialize_any;
        deserialize_seq: b'[' => deserialize_any;
        deserialize_map: b'{' => deserialize_any;
        deserialize_bytes, deserialize_byte_buf, deserialize_i128, deserialize_u128: _ => unusual;
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        self.deserialize_map(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Read<V::Value> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.deserialize_any(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Read<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Read<V::Value> {
        self.deserialize_unit(visitor)
    }
}

/// What stands between two brackets.
struct Items<'reader, 'de> {
    reader: &'reader mut Reader<'de>,
    close: u8,
    is_first: bool,
}

impl Items<'_, '_> {
    /// The byte that the next item begins with; none when there is none.
    #[inline]
    fn next(&mut self) -> Read<Option<u8>> {
        let cursor = &mut self.reader.cursor;
        let byte = cursor.peek_token();
        if byte == Some(self.close) {
            return Ok(None);
        }
        if std::mem::take(&mut self.is_first) {
            return Ok(byte);
        }
        if byte != Some(b',') {
            return Err(Unusual);
        }
        cursor.skip(1);
        Ok(cursor.peek_token())
    }
}

impl<'de> MapAccess<'de> for Items<'_, 'de> {
    type Error = Unusual;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Read<Option<K::Value>> {
        match self.next()? {
            Some(b'"') => {
                let name = self.reader.cursor.plain_string().ok_or(Unusual)?;
                seed.deserialize(BorrowedStrDeserializer::new(name))
                    .map(Some)
            }
            None if self.close == b'}' => Ok(None),
            _ => Err(Unusual),
        }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Read<V::Value> {
        let cursor = &mut self.reader.cursor;
        if cursor.peek_token() != Some(b':') {
            return Err(Unusual);
        }
        cursor.skip(1);
        seed.deserialize(&mut *self.reader)
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = Unusual;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Read<Option<T::Value>> {
        match self.next()? {
            Some(_) => seed.deserialize(&mut *self.reader).map(Some),
            None => Ok(None),
        }
    }
}
