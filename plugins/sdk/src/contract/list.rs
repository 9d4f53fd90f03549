//! Lists and texts that live as long as the instance.
//!
//! Owns: the pair of address and length that the canonical ABI calls a list. Promises: a list is as good as a
//! `&'static [T]`, and a text as a `&'static str`.
#![allow(
    unsafe_code,
    reason = "a list is two words in a fixed order, which no type of the standard library promises to be"
)]

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// So much room behind a text may be lost.
const SPARE_MAX: usize = 32;

/// A `&'static [T]` whose two words stand in the order of the canonical ABI.
#[repr(C)]
pub struct List<T: 'static> {
    start: NonNull<T>,
    length: usize,
    items: PhantomData<&'static [T]>,
}

/// Text that lives as long as the instance: what an event holds and what values are made of. It reads like a `&str`
/// and is copied freely.
///
/// ```
/// use projector_sdk::Text;
///
/// let text = Text::from(format!("{} tickets", 2));
/// assert!(text.starts_with("2") && text == "2 tickets");
/// ```
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Text(List<u8>);

// SAFETY: a list is a shared reference to a slice.
unsafe impl<T: Sync> Send for List<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for List<T> {}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<T> {}

impl<T> List<T> {
    /// A list over a slice.
    #[must_use]
    pub const fn new(items: &'static [T]) -> Self {
        Self {
            start: NonNull::from_ref(items).cast(),
            length: items.len(),
            items: PhantomData,
        }
    }

    /// The slice.
    #[must_use]
    pub const fn as_slice(self) -> &'static [T] {
        // SAFETY: made by `new` of just such a slice, or written by the host into this instance's memory, where
        // nothing is ever freed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The items stay for good.
impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        Self::new(items.leak())
    }
}

impl<T: PartialEq> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Text {
    /// A text that is part of the program.
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Self(List::new(text.as_bytes()))
    }

    /// A text with this content, which is copied.
    #[must_use]
    pub fn copy(text: &str) -> Self {
        if text.is_empty() {
            return Self::new("");
        }
        let room = room(text.len());
        // SAFETY: there is room for so many bytes, and nobody else has it.
        let bytes = unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), room.as_ptr(), text.len());
            std::slice::from_raw_parts(room.as_ptr(), text.len())
        };
        Self(List::new(bytes))
    }

    /// A text of these bytes, which are ASCII; its length is known, so that copying it takes a few instructions.
    #[inline]
    pub(crate) fn ascii<const N: usize>(bytes: &[u8; N]) -> Self {
        assert!(bytes.is_ascii(), "made of digits and marks");
        let room = room(N).cast::<[u8; N]>();
        // SAFETY: as above.
        let bytes: &'static [u8; N] = unsafe {
            room.write(*bytes);
            room.as_ref()
        };
        Self(List::new(bytes))
    }

    /// The text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        // SAFETY: made of a `str`, or written by the host, which hands over nothing but UTF-8.
        unsafe { std::str::from_utf8_unchecked(self.0.as_slice()) }
    }

    /// Whether both are the same bytes in memory.
    #[inline]
    pub(crate) fn is_same(self, other: Self) -> bool {
        self.0.start == other.0.start && self.0.length == other.0.length
    }

    /// Names are mostly the same literal, which shows without reading it.
    fn equals(self, other: &str) -> bool {
        let (start, length) = (other.as_ptr(), other.len());
        length == self.0.length
            && (start == self.0.start.as_ptr() || self.as_str().as_bytes() == other.as_bytes())
    }
}

/// Room for so many bytes, which is never freed.
#[cfg(target_arch = "wasm32")]
#[inline]
fn room(bytes: usize) -> NonNull<u8> {
    match NonNull::new(crate::allocator::HEAP.keep(bytes, 1)) {
        Some(room) => room,
        None => std::alloc::handle_alloc_error(std::alloc::Layout::new::<u8>()),
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn room(bytes: usize) -> NonNull<u8> {
    NonNull::from_ref(vec![0_u8; bytes].leak()).cast()
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

/// The text stays for good: without being copied, unless much room would be lost.
impl From<String> for Text {
    fn from(text: String) -> Self {
        if text.capacity() - text.len() > SPARE_MAX {
            return Self::copy(&text);
        }
        Self::new(text.leak())
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.as_str().to_owned()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.equals(other)
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.equals(other)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::{List, Text};

    #[test]
    fn lists_and_texts_read_as_what_they_were_made_of() {
        let numbers = List::from(vec![1, 2, 3]);
        assert_eq!(*numbers, [1, 2, 3]);
        assert_eq!(numbers, List::new(&[1, 2, 3]));
        assert!(List::<u64>::new(&[]).is_empty());
        let text = Text::from("état".to_owned());
        assert_eq!(text, Text::new("état"));
        assert_eq!(text, "état");
        assert_ne!(text, Text::copy("etat"));
        assert_eq!(format!("{text} {text:?}"), "état \"état\"");
        assert!(Text::copy("").is_empty());
    }
}
