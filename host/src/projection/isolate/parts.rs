//! How a failed batch is cut. No I/O.

use crate::event_store::event::{Batch, Event, Position};

/// The first part behind a named event has at least so many events; each one after it four times as many.
const STRETCH_EVENTS_MIN: usize = 64;

/// A stretch of the batch that is still to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) first: usize,
    pub(super) end: usize,
}

impl Part {
    /// Everything after a position.
    pub(super) fn after(batch: &Batch, position: Position) -> Self {
        Self {
            first: batch
                .events
                .partition_point(|event| event.position <= position),
            end: batch.events.len(),
        }
    }

    pub(super) fn events(self) -> usize {
        self.end - self.first
    }
}

/// Halves, or the parts around a named event. The first part stands last, where `pop` takes it.
///
/// Behind a named event the parts grow: where one event in ten is bad, each of them costs as many events as
/// stand between two, not as many as the batch has.
pub(super) fn split(part: Part, named: Option<usize>) -> Vec<Part> {
    let Part { first, end } = part;
    let named = named.filter(|at| (first..end).contains(at) && part.events() > 1);
    let mut cuts = vec![first];
    match named {
        Some(at) => {
            cuts.extend([at, at + 1]);
            let mut stretch = (4 * (at + 1 - first)).max(STRETCH_EVENTS_MIN);
            let mut cut = at + 1 + stretch;
            while cut < end {
                cuts.push(cut);
                stretch *= 4;
                cut += stretch;
            }
        }
        None if part.events() > 1 => cuts.push(first + part.events() / 2),
        None => {}
    }
    cuts.push(end);
    parts(&cuts)
}

/// Each event alone.
pub(super) fn singles(part: Part) -> Vec<Part> {
    let cuts: Vec<usize> = (part.first..=part.end).collect();
    match part.events() {
        0 => vec![part],
        _ => parts(&cuts),
    }
}

fn parts(cuts: &[usize]) -> Vec<Part> {
    let mut parts: Vec<Part> = cuts
        .windows(2)
        .map(|cut| Part {
            first: cut[0],
            end: cut[1],
        })
        .collect();
    // An empty part would commit a checkpoint of its own for nothing, unless it is all there is.
    if parts.len() > 1 {
        parts.retain(|part| part.events() > 0);
    }
    parts.reverse();
    parts
}

/// The stretch of the store that belongs to a part: up to the next one, and for the last part to the end.
pub(super) fn piece(batch: &Batch, part: Part, after: Position) -> Batch {
    // Everything before the next wanted event was scanned.
    let events = batch.events[part.first..part.end].to_vec();
    let (upto, anchor) = match batch.events.get(part.end) {
        Some(next) => (
            Position(next.position.0 - 1),
            events.last().map(Event::anchor),
        ),
        None => (batch.upto, batch.anchor.clone()),
    };
    Batch {
        after,
        upto,
        anchor,
        events,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(first: usize, end: usize, named: Option<usize>, expected: &[(usize, usize)]) {
        let mut parts = split(Part { first, end }, named);
        parts.reverse();
        let parts: Vec<_> = parts
            .into_iter()
            .map(|part| (part.first, part.end))
            .collect();
        assert_eq!(parts, expected, "{first}..{end} named {named:?}");
    }

    #[test]
    fn parts_cover_the_batch_in_order_and_a_named_event_stands_alone() {
        check(0, 8, None, &[(0, 4), (4, 8)]);
        check(0, 3, None, &[(0, 1), (1, 3)]);
        check(0, 1, None, &[(0, 1)]);
        check(0, 8, Some(3), &[(0, 3), (3, 4), (4, 8)]);
        check(0, 8, Some(0), &[(0, 1), (1, 8)]);
        check(0, 8, Some(7), &[(0, 7), (7, 8)]);
        check(2, 4, Some(9), &[(2, 3), (3, 4)]);
        check(5, 5, None, &[(5, 5)]);
    }

    #[test]
    fn behind_a_named_event_the_parts_grow() {
        check(
            0,
            1_000,
            Some(9),
            &[(0, 9), (9, 10), (10, 74), (74, 330), (330, 1_000)],
        );
        check(
            100,
            10_100,
            Some(599),
            &[(100, 599), (599, 600), (600, 2_600), (2_600, 10_100)],
        );
        assert_eq!(singles(Part { first: 3, end: 3 }).len(), 1);
        assert_eq!(
            singles(Part { first: 3, end: 5 }),
            [Part { first: 4, end: 5 }, Part { first: 3, end: 4 }]
        );
    }
}
