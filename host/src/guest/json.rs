//! The contract as JSON text, for interpreted guests: the same meaning as the typed lists.
//!
//! The shapes stand in docs/plugins-json.md. Promises: whatever text a guest returns, the host's memory stays
//! within `output_bytes_max` (counted the way the engine counts typed lists), nothing recurses, and an error
//! says at which write and column. Must never: lose a digit of a 64-bit number.

use std::cell::Cell;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

mod batch;
mod cells;
mod rows;
mod value;
mod writes;

pub(super) use batch::batch;
pub use rows::{keys, rows};
pub use writes::writes;

/// How deep arrays and objects may lie in each other.
const DEPTH_MAX: usize = 128;

/// Why a text is not what the contract asks for.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum JsonFault {
    /// No JSON, or not of the right shape; names the place.
    #[error("{0}")]
    Shape(String),
    /// More elements than the bound allows.
    #[error("more than {max} {noun}s")]
    TooMany {
        /// What the elements are.
        noun: &'static str,
        /// The bound.
        max: usize,
    },
    /// Arrays and objects within each other.
    #[error("arrays and objects lie more than {DEPTH_MAX} deep in each other")]
    Depth,
}

/// What is left of the bytes that a text may turn into.
struct Budget {
    left: usize,
    max: usize,
}

impl Budget {
    fn new(max: usize) -> Self {
        Self { left: max, max }
    }

    fn take(&mut self, bytes: usize) -> Result<(), String> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(format!("more than output_bytes_max ({}) allows", self.max)),
        }
    }
}

/// Parses a text that is an array, element by element, so that a bound stops it early.
fn array<T>(
    text: &str,
    noun: &'static str,
    elements_max: usize,
    element: impl FnMut(&RawValue) -> Result<T, String>,
) -> Result<Vec<T>, JsonFault> {
    if too_deep(text) {
        return Err(JsonFault::Depth);
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // serde's errors are texts, so that this one is told apart beside them.
    let over = Cell::new(false);
    let array = Array {
        noun,
        elements_max,
        element,
        over: &over,
    };
    deserializer
        .deserialize_seq(array)
        .and_then(|elements| deserializer.end().map(|()| elements))
        .map_err(|error| match over.get() {
            true => JsonFault::TooMany {
                noun,
                max: elements_max,
            },
            false => JsonFault::Shape(error.to_string()),
        })
}

struct Array<'o, F> {
    noun: &'static str,
    elements_max: usize,
    element: F,
    over: &'o Cell<bool>,
}

impl<'de, T, F: FnMut(&RawValue) -> Result<T, String>> Visitor<'de> for Array<'_, F> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an array of {}s", self.noun)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(raw) = seq.next_element::<&RawValue>()? {
            if elements.len() >= self.elements_max {
                self.over.set(true);
                return Err(de::Error::custom(format!(
                    "more than {} {}s",
                    self.elements_max, self.noun
                )));
            }
            let element = (self.element)(raw).map_err(|what| {
                de::Error::custom(format!("{} {}: {what}", self.noun, elements.len()))
            })?;
            elements.push(element);
        }
        Ok(elements)
    }
}

fn too_deep(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return true;
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}
