//! Moving over JSON text, without looking at what it means.

/// A place in a text.
pub(super) struct Cursor<'de> {
    text: &'de str,
    at: usize,
}

impl<'de> Cursor<'de> {
    pub(super) fn new(text: &'de str) -> Self {
        Self { text, at: 0 }
    }

    /// The next byte that is no blank; none at the end.
    #[inline]
    pub(super) fn peek_token(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    #[inline]
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Goes over this word, if it is what comes.
    #[inline]
    pub(super) fn take(&mut self, word: &str) -> bool {
        let is_here = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        if is_here {
            self.at += word.len();
        }
        is_here
    }

    /// The text that begins with the quote here and needs no decoding; none, and no step, if it does.
    #[inline]
    pub(super) fn plain_string(&mut self) -> Option<&'de str> {
        let start = self.at + 1;
        let end = self.special(start);
        if self.text.as_bytes().get(end) != Some(&b'"') {
            return None;
        }
        self.at = end + 1;
        self.text.get(start..end)
    }

    /// The text that begins with the quote here, with its quotes and as it is written; none if it does not end.
    pub(super) fn string(&mut self) -> Option<&'de str> {
        let start = self.at;
        let mut end = self.special(start + 1);
        loop {
            match self.text.as_bytes().get(end)? {
                b'"' => break,
                b'\\' => end = self.special(end + 2),
                _ => return None,
            }
        }
        self.at = end + 1;
        self.text.get(start..self.at)
    }

    /// What could be a number.
    #[inline]
    pub(super) fn number(&mut self) -> &'de str {
        let start = self.at;
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        while self.text.as_bytes().get(self.at).is_some_and(is_part) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// What was gone over since that place.
    pub(super) fn since(&self, place: usize) -> &'de str {
        &self.text[place..self.at]
    }

    /// The next place from here on that [`special`] stops at.
    #[inline]
    fn special(&self, from: usize) -> usize {
        from + special(self.text.as_bytes().get(from..).unwrap_or_default())
    }
}

/// How many bytes stand before the first quote, backslash or control character; looks at eight at a time.
#[inline]
pub(crate) fn special(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    let mut at = 0;
    for word in words {
        let found = marks(u64::from_le_bytes(*word));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let plain = rest.iter().take_while(|&&byte| !is_special(byte));
    at + plain.count()
}

const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// The highest bit of each byte that [`is_special`], right up to and including the first of them.
#[inline]
const fn marks(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    let quote = word ^ (b'"' as u64 * ONES);
    let backslash = word ^ (b'\\' as u64 * ONES);
    let found = (quote.wrapping_sub(ONES) & !quote)
        | (backslash.wrapping_sub(ONES) & !backslash)
        | (word.wrapping_sub(0x20 * ONES) & !word);
    found & HIGH
}

#[cfg(test)]
mod tests {
    use super::{is_special, marks};

    #[test]
    fn the_first_special_byte_is_found_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            for filling in [b'a', 0x80, 0xff, 0x21, 0x23, 0x5b, 0x5d] {
                for place in 0..8 {
                    let mut word = [filling; 8];
                    word[place] = byte;
                    let found = marks(u64::from_le_bytes(word)).trailing_zeros() / 8;
                    let expected = if is_special(byte) { place } else { 8 };
                    assert_eq!(found as usize, expected, "{word:?}");
                }
            }
        }
    }
}
