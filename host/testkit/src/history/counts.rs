//! What the guest that counts has seen, against the events of the store: each once.
//!
//! Its rows hold a number an event, a number a type and a total, each the sum of ones. What was delivered twice or not
//! at all shows here, though the checkpoints say nothing of it.

use std::collections::BTreeMap;

use super::Stored;

/// The projection of the guest that counts.
pub const COUNTS: &str = "counts";

/// Its table, and the key of its total.
pub const SEEN: &str = "events_seen";
const TOTAL: &str = "total";

/// Every number that is not what the events up to a position come to.
pub(crate) fn miscounted(
    seen: &BTreeMap<String, i64>,
    events: &[Stored],
    upto: i64,
) -> Vec<String> {
    let mut expected: BTreeMap<&str, i64> = BTreeMap::new();
    for event in events.iter().filter(|event| event.position <= upto) {
        for key in [event.id.as_str(), event.kind.as_str(), TOTAL] {
            *expected.entry(key).or_default() += 1;
        }
    }
    let places: BTreeMap<&str, i64> = events
        .iter()
        .map(|event| (event.id.as_str(), event.position))
        .collect();
    let keys = expected.keys().copied();
    let strangers = seen
        .keys()
        .map(String::as_str)
        .filter(|key| !expected.contains_key(key));
    keys.chain(strangers)
        .filter_map(|key| {
            let wanted = expected.get(key).copied().unwrap_or(0);
            let found = seen.get(key).copied().unwrap_or(0);
            let place = places.get(key);
            let place = place.map_or(String::new(), |place| format!(", position {place}"));
            (found != wanted).then(|| {
                format!("{COUNTS} up to {upto}: {key}{place} was counted {found} times instead of {wanted}")
            })
        })
        .collect()
}
