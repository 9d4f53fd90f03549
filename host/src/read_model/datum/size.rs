//! How large values may be in a key or an index.
//!
//! A B-tree entry holds 2,704 bytes. The server compresses before it counts, and counts a whole entry; here values are
//! counted as they are, each by itself or within its key, so that whether a write passes depends on nothing but the
//! write.

use super::{Datum, text};
use crate::plugin::manifest::{ColumnType, Table};

/// What the values of one entry may have together: the server's 2,704 less the entry's own head and null bits.
pub const ENTRY_BYTES_MAX: usize = 2_688;

/// What each value counts beside its bytes: its length and padding.
const VALUE_BYTES: usize = 8;

/// Largest factor by which jsonb is longer than its text: a digit and a comma become twelve bytes.
const JSONB_FACTOR: usize = 6;

/// Digits that a numeric's parts leave free below their bound, for sums of many amounts.
const SUM_DIGITS: usize = 24;

/// Room that each element of a text[] takes beside its bytes, and the array's head.
const ELEMENT_BYTES: usize = 8;
const ARRAY_BYTES: usize = 24;

/// Bytes that a value takes in a B-tree entry at most, without compression.
#[must_use]
pub fn entry_bytes(datum: &Datum) -> usize {
    let bytes = match datum {
        Datum::Null => return 0,
        Datum::Boolean(_) | Datum::Date(_) => 4,
        Datum::BigInt(_) | Datum::Double(_) | Datum::Timestamptz(_) => 8,
        Datum::Uuid(_) => 16,
        Datum::Text(text) => text.len(),
        Datum::Bytea(bytes) => bytes.len(),
        Datum::Jsonb(text) => text.len().saturating_mul(JSONB_FACTOR),
        Datum::TextArray(texts) => {
            let elements = texts.iter().map(|text| text.len() + ELEMENT_BYTES);
            ARRAY_BYTES + elements.sum::<usize>()
        }
        Datum::Numeric(number) => {
            let (whole, fraction) = text::extent(number);
            // Four digits in two bytes, and one group more on either side.
            usize::try_from((whole + fraction) / 2 + 8).unwrap_or(usize::MAX)
        }
    };
    bytes.saturating_add(VALUE_BYTES)
}

/// Refuses a key whose values are too large together.
pub fn check_key(key: &[Datum]) -> Result<(), String> {
    let bytes = key
        .iter()
        .fold(0_usize, |sum, datum| sum.saturating_add(entry_bytes(datum)));
    if bytes <= ENTRY_BYTES_MAX {
        return Ok(());
    }
    Err(format!(
        "the key's values have {bytes} bytes; at most {ENTRY_BYTES_MAX} are allowed, counting {VALUE_BYTES} more for each"
    ))
}

/// For each column, how large its values may be; none where it stands in no index. Columns of one index share what is
/// left beside those of fixed size, since one write need not give them all.
#[must_use]
pub fn bounds(table: &Table) -> Vec<Option<usize>> {
    let mut bounds: Vec<Option<usize>> = vec![None; table.columns.len()];
    for index in &table.indexes {
        let types = index.iter().map(|&at| table.columns[at].column_type);
        let fixed: usize = types.clone().filter_map(fixed_bytes).sum();
        let others = types.filter(|t| fixed_bytes(*t).is_none()).count();
        let share = ENTRY_BYTES_MAX.saturating_sub(fixed) / others.max(1);
        for &at in index {
            if fixed_bytes(table.columns[at].column_type).is_none() {
                bounds[at] = Some(bounds[at].map_or(share, |known| known.min(share)));
            }
        }
    }
    bounds
}

/// Refuses a value, or an amount, that is too large for the indexes of its column.
pub fn check_indexed(datum: &Datum, bound: Option<usize>) -> Result<(), String> {
    let Some(bound) = bound else {
        return Ok(());
    };
    if let Datum::Numeric(number) = datum {
        // Judged apart, since a sum has the longer whole part and the longer fraction of all its amounts.
        let digits = i64::try_from(bound.saturating_sub(SUM_DIGITS)).unwrap_or(i64::MAX);
        let (whole, fraction) = text::extent(number);
        if whole > digits || fraction > digits {
            return Err(format!(
                "the number has {whole} digits before and {fraction} after the point; \
                 an index of this column holds {digits} of each"
            ));
        }
        return Ok(());
    }
    let bytes = entry_bytes(datum);
    if bytes <= bound {
        return Ok(());
    }
    Err(format!(
        "the value has {bytes} bytes as an index counts them; its index holds {bound}"
    ))
}

fn fixed_bytes(column_type: ColumnType) -> Option<usize> {
    let bytes = match column_type {
        ColumnType::Boolean | ColumnType::Date => 4,
        ColumnType::BigInt | ColumnType::Double | ColumnType::Timestamptz => 8,
        ColumnType::Uuid => 16,
        _ => return None,
    };
    Some(bytes + VALUE_BYTES)
}
