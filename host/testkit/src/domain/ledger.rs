//! What derived tables count: how many rows, and what they are worth, by key.

use std::collections::BTreeMap;

use serde_json::Value;

/// Count and sum by key, exact.
#[derive(Debug, Default)]
pub(super) struct Ledger(BTreeMap<Vec<String>, (i128, i128)>);

/// One row's share: under which key, and what it is worth.
pub(super) type Share = (Vec<String>, i64);

impl Ledger {
    /// Moves a row: out of the old share and into the new one. Judged on the net change; refused as a whole.
    pub(super) fn shift(&mut self, old: Option<Share>, new: Option<Share>) -> Result<(), String> {
        let mut changed: BTreeMap<Vec<String>, (i128, i128)> = BTreeMap::new();
        for (share, sign) in [(old, -1_i128), (new, 1)] {
            let Some((key, amount)) = share else { continue };
            let base = self.0.get(&key).copied().unwrap_or_default();
            let entry = changed.entry(key).or_insert(base);
            entry.0 += sign;
            entry.1 += sign * i128::from(amount);
        }
        if let Some((key, _)) = changed
            .iter()
            .find(|(_, (_, sum))| i64::try_from(*sum).is_err())
        {
            return Err(format!("the total of {key:?} does not fit in 64 bits"));
        }
        self.0.extend(changed);
        Ok(())
    }

    /// Every key with its count and sum.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&[String], Value, Value)> {
        self.0
            .iter()
            .map(|(key, (count, sum))| (key.as_slice(), number(*count), number(*sum)))
    }
}

fn number(number: i128) -> Value {
    // Refused beyond 64 bits when it was entered.
    i64::try_from(number).map_or(Value::Null, Value::from)
}
