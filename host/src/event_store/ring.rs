//! The last events before the mark, kept in memory: read once, fed to every projection near the head.

use std::collections::VecDeque;
use std::sync::Arc;

use super::BatchLimits;
use super::error::Error;
use super::event::{self, Batch, Event, Position, Subscription};
use super::rows::{payload, size};

/// Bounds of what is kept.
const EVENTS_MAX: usize = 20_000;
const BYTES_MAX: usize = 32 << 20;

/// A contiguous stretch of the store: every event after `from` up to the mark.
#[derive(Debug)]
pub(super) struct Ring {
    from: Position,
    upto: Position,
    events: VecDeque<Arc<Event>>,
    bytes: usize,
}

impl Ring {
    pub(super) fn new(at: Position) -> Self {
        Self {
            from: at,
            upto: at,
            events: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The stretch begins anew: what lies between was not read here.
    ///
    /// # Errors
    /// When that lies before what is already here: it would be read a second time.
    pub(super) fn restart(&mut self, at: Position) -> Result<(), Error> {
        if at < self.upto {
            return Err(Error::out_of_order(at, self.upto));
        }
        *self = Self::new(at);
        Ok(())
    }

    /// More of the store: every event after `from` up to `upto`, which are settled.
    ///
    /// # Errors
    /// When it does not begin where the stretch ends, or when its positions do not rise. Nothing is taken then.
    pub(super) fn extend(
        &mut self,
        from: Position,
        events: Vec<Event>,
        upto: Position,
    ) -> Result<(), Error> {
        if from != self.upto {
            return Err(Error::out_of_order(from, self.upto));
        }
        event::check_order(from, &events, upto)?;
        for event in events {
            self.bytes += size(&event);
            self.events.push_back(Arc::new(event));
        }
        self.upto = upto;
        while self.events.len() > EVENTS_MAX || (self.bytes > BYTES_MAX && !self.events.is_empty())
        {
            if let Some(event) = self.events.pop_front() {
                self.bytes -= size(&event);
                self.from = event.position;
            }
        }
        Ok(())
    }

    /// The wanted events after a position, if the stretch reaches back so far.
    pub(super) fn batch(
        &self,
        after: Position,
        subscription: &Subscription,
        limits: BatchLimits,
    ) -> Option<Batch> {
        if after < self.from || after >= self.upto {
            return None;
        }
        let first = self.events.partition_point(|event| event.position <= after);
        let (mut events, mut bytes, mut upto) = (Vec::new(), 0, self.upto);
        let (mut scanned, mut anchor) = (after, None);
        for event in self.events.iter().skip(first) {
            if subscription.wants(&event.event_type, &event.stream) {
                bytes += payload(event);
                let full = events.len() >= limits.events_max.max(1) || bytes > limits.bytes_max;
                if full && !events.is_empty() {
                    upto = scanned;
                    break;
                }
                events.push(Event::clone(event));
            }
            scanned = event.position;
            anchor = Some(event);
        }
        Some(Batch {
            after,
            upto,
            anchor: anchor.map(|event| event.anchor()),
            events,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(position: i64, event_type: &str, bytes: usize) -> Event {
        Event {
            position: Position(position),
            id: String::new(),
            stream: "s".to_owned(),
            version: 1,
            event_type: event_type.to_owned(),
            schema_version: 1,
            recorded_at: 0,
            data: "x".repeat(bytes),
            metadata: "{}".to_owned(),
        }
    }

    fn check(
        ring: &Ring,
        after: i64,
        events_max: usize,
        bytes_max: usize,
        expected: Option<(&[i64], i64)>,
    ) {
        let wanted = Subscription {
            types: vec!["A".to_owned()],
            stream_prefixes: vec![],
        };
        let batch = ring.batch(
            Position(after),
            &wanted,
            BatchLimits {
                events_max,
                bytes_max,
            },
        );
        let found = batch.map(|batch| {
            (
                batch
                    .events
                    .iter()
                    .map(|e| e.position.0)
                    .collect::<Vec<_>>(),
                batch.upto.0,
            )
        });
        assert_eq!(
            found,
            expected.map(|(positions, upto)| (positions.to_vec(), upto))
        );
    }

    #[test]
    fn a_batch_ends_where_a_bound_is_reached_and_never_leaves_a_wanted_event_behind() {
        let mut ring = Ring::new(Position(10));
        ring.extend(
            Position(10),
            vec![
                event(11, "A", 5),
                event(12, "B", 5),
                event(14, "A", 50),
                event(15, "A", 5),
            ],
            Position(17),
        )
        .expect("rising");
        check(&ring, 10, 10, 1_000, Some((&[11, 14, 15], 17)));
        check(&ring, 10, 1, 1_000, Some((&[11], 12)));
        check(&ring, 12, 1, 1_000, Some((&[14], 14)));
        check(&ring, 12, 10, 20, Some((&[14], 14)));
        check(&ring, 15, 10, 20, Some((&[], 17)));
        check(&ring, 17, 10, 20, None);
        check(&ring, 9, 10, 20, None);
    }

    #[test]
    fn what_does_not_rise_is_refused_and_changes_nothing() {
        let mut ring = Ring::new(Position(10));
        let first = || vec![event(11, "A", 1), event(12, "A", 1)];
        ring.extend(Position(10), first(), Position(12))
            .expect("rising");
        let refused = |ring: &mut Ring, from, positions: &[i64], upto| {
            let events = positions.iter().map(|&at| event(at, "A", 1)).collect();
            ring.extend(Position(from), events, Position(upto))
                .expect_err("does not rise");
            check(ring, 10, 10, 1_000, Some((&[11, 12], 12)));
        };
        // The same look again, as after a session that was lost half way.
        refused(&mut ring, 10, &[11, 12], 12);
        refused(&mut ring, 12, &[12, 13], 13);
        refused(&mut ring, 12, &[13, 13], 13);
        refused(&mut ring, 12, &[14, 13], 14);
        refused(&mut ring, 12, &[13, 15], 14);
        // A stretch that was left out.
        refused(&mut ring, 13, &[14], 14);
        ring.restart(Position(11)).expect_err("goes back");
        ring.restart(Position(12)).expect("goes on");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut ring = Ring::new(Position(0));
        for position in 1..=40 {
            ring.extend(
                Position(position - 1),
                vec![event(position, "A", 1 << 20)],
                Position(position),
            )
            .expect("rising");
        }
        assert!(ring.bytes <= BYTES_MAX);
        assert!(
            ring.batch(
                Position(0),
                &Subscription::default(),
                BatchLimits {
                    events_max: 1,
                    bytes_max: 1
                }
            )
            .is_none()
        );
        check(&ring, 39, 10, 1, Some((&[40], 40)));
    }
}
