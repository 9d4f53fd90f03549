//! The keys of rows that are written and never read. Totals are written again and again, so that the last keys are
//! kept as the contract has them; which ones never shows.

use std::hash::{Hash, Hasher};

use super::overlay::Quick;
use crate::contract::{Cell, List, Text};
use crate::key::{self, KeyPart};

/// How many keys are kept; a power of two.
const KEPT: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Recent {
    /// By the hash of the key; empty until the first one.
    kept: Vec<Option<Kept>>,
}

#[derive(Debug)]
struct Kept {
    table: Text,
    parts: Vec<KeyPart>,
    cells: List<Cell>,
}

impl Recent {
    /// The key as the contract has it.
    pub(super) fn cells(&mut self, table: Text, parts: &[KeyPart]) -> List<Cell> {
        if parts.iter().any(KeyPart::is_position) {
            // Most likely no other row has this key.
            return key::cells(parts);
        }
        if self.kept.is_empty() {
            self.kept.resize_with(KEPT, || None);
        }
        let mut hasher = Quick::default();
        parts.iter().for_each(|part| part.value.hash(&mut hasher));
        let place = hasher.finish() as usize % KEPT;
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
    use super::{KEPT, Recent};
    use crate::contract::Text;
    use crate::key::{Key, cells};
    use crate::value::Value;

    #[test]
    fn every_key_is_given_as_it_was_named() {
        let mut recent = Recent::default();
        for round in 0..3 {
            for number in 0..2 * KEPT as i64 {
                let name = format!("item-{}", number % 700);
                let key = Key::new("t").part("id", number / 3).part("name", name);
                for table in ["t", "u"] {
                    let found = recent.cells(Text::new(table), &key.parts);
                    assert_eq!(found, cells(&key.parts), "{round}");
                }
            }
        }
        let key = Key::new("t").part("id", Value::Position);
        assert_eq!(recent.cells(Text::new("t"), &key.parts), cells(&key.parts));
    }
}
