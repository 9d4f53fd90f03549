//! The keys of rows that are written and never read. Totals are written again and again, so that the last keys are
//! kept as the contract has them; which ones never shows.

use std::hash::{Hash, Hasher};

use super::overlay::Quick;
use crate::contract::{Cell, List, Text};
use crate::key::{self, KeyPart};

/// How many keys are kept at most; a power of two.
const KEPT_MAX: usize = 2_048;

#[derive(Debug)]
pub(super) struct Recent {
    /// By the hash of the key.
    kept: Vec<Option<Kept>>,
}

#[derive(Debug)]
struct Kept {
    table: Text,
    parts: Vec<KeyPart>,
    cells: List<Cell>,
}

impl Recent {
    /// Fewer are kept for a small batch.
    pub(super) fn new(events: usize) -> Self {
        let mut kept = Vec::new();
        kept.resize_with(events.next_power_of_two().min(KEPT_MAX), || None);
        Self { kept }
    }

    /// The key as the contract has it.
    pub(super) fn cells(&mut self, table: Text, parts: &[KeyPart]) -> List<Cell> {
        if parts.iter().any(KeyPart::is_position) {
            // Most likely no other row has this key.
            return key::cells(parts);
        }
        let mut hasher = Quick::default();
        parts.iter().for_each(|part| part.value.hash(&mut hasher));
        let place = hasher.finish() as usize & (self.kept.len() - 1);
        match &mut self.kept[place] {
            Some(kept) if kept.table == table && kept.parts == parts => kept.cells,
            Some(kept) => {
                kept.table = table;
                kept.parts.clear();
                kept.parts.extend_from_slice(parts);
                kept.cells = key::cells(parts);
                kept.cells
            }
            none => {
                let cells = key::cells(parts);
                *none = Some(Kept {
                    table,
                    parts: parts.to_vec(),
                    cells,
                });
                cells
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Recent;
    use crate::contract::Text;
    use crate::key::{Key, cells};
    use crate::value::Value;

    #[test]
    fn every_key_is_given_as_it_was_named() {
        let mut recent = Recent::new(500);
        for table in ["t", "u", "t"] {
            for number in 0..1_000_i64 {
                let name = format!("item-{}", number % 700);
                let key = Key::new("t").part("id", number / 3).part("name", name);
                let found = [(); 2].map(|()| recent.cells(Text::new(table), &key.parts));
                assert_eq!(found, [cells(&key.parts); 2], "{table} {number}");
                assert!(std::ptr::eq(&*found[0], &*found[1]), "kept");
            }
        }
        let key = Key::new("t").part("id", Value::Position);
        assert_eq!(recent.cells(Text::new("t"), &key.parts), cells(&key.parts));
    }
}
