//! Streams that wait: their events go to the dead letters instead of the guest.
//!
//! The set is fixed for a run: whatever changes it (isolating, a retry, a discard) ends the run first.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use crate::event_store::event::Event;
use crate::guest::call::{Ready, Spent};
use crate::read_model::dead_letter::{Letter, PARKED_STREAMS_MAX};
use crate::telemetry::metrics::ProjectionMetrics;

use super::failure::{Failure, WAITING};
use super::pending::Pending;
use super::work::{Outcome, Work};

/// The waiting streams of a projection. A clone shares the set until it is changed.
#[derive(Debug, Clone, Default)]
pub struct Parked(Arc<HashSet<String>>);

/// What did not go to the guest.
#[derive(Debug, Default)]
pub struct Waiting {
    /// The events that wait.
    pub letters: Vec<Letter>,
    /// Places in the batch of those that do not; unused while none waits.
    places: Vec<usize>,
}

impl FromIterator<String> for Parked {
    fn from_iter<I: IntoIterator<Item = String>>(streams: I) -> Self {
        Self(Arc::new(streams.into_iter().collect()))
    }
}

impl Parked {
    /// Whether one more may wait.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.0.len() < PARKED_STREAMS_MAX
    }

    /// From now on this stream waits.
    pub fn park(&mut self, stream: &str) {
        Arc::make_mut(&mut self.0).insert(stream.to_owned());
    }

    /// Hands the events that do not wait to the guest, if there are any, in the instance that is ready if one is, and counts
    /// the call. What is left of the instance is dropped where nobody waits, but on the guest's thread.
    pub fn project(
        &self,
        work: &Work,
        ready: &mut Option<Ready>,
        events: &[Event],
        pending: &Pending,
        metrics: &ProjectionMetrics,
    ) -> (Result<Option<Outcome>, Failure>, Waiting, Option<Spent>) {
        let (free, waiting) = self.divide(events);
        if free.is_empty() {
            return (Ok(None), waiting, None);
        }
        let called = work.project(ready.take(), &free, pending);
        metrics.called(
            called
                .as_ref()
                .map_or_else(|failure| failure.category, |_| "ok"),
        );
        match called {
            Ok((outcome, spent)) => (Ok(Some(outcome)), waiting, Some(spent)),
            Err(failure) => (Err(waiting.name(failure)), waiting, None),
        }
    }

    /// Borrows while no event waits.
    fn divide<'e>(&self, events: &'e [Event]) -> (Cow<'e, [Event]>, Waiting) {
        let waits = |event: &Event| self.0.contains(&event.stream);
        let mut waiting = Waiting::default();
        if self.0.is_empty() || !events.iter().any(waits) {
            return (Cow::Borrowed(events), waiting);
        }
        let mut free = Vec::new();
        for (place, event) in events.iter().enumerate() {
            if waits(event) {
                let why = "an earlier event of its stream did not pass".to_owned();
                let letter = Letter::new(event, WAITING, why, true);
                waiting.letters.push(letter);
            } else {
                waiting.places.push(place);
                free.push(event.clone());
            }
        }
        (Cow::Owned(free), waiting)
    }
}

impl Waiting {
    /// A failure that names an event of those that the guest got, told as a place in the whole batch.
    #[must_use]
    pub fn name(&self, failure: Failure) -> Failure {
        if self.letters.is_empty() {
            return failure;
        }
        let event = failure
            .event
            .and_then(|event| self.places.get(event).copied());
        Failure { event, ..failure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_store::event::Position;

    fn event(position: i64, stream: &str) -> Event {
        Event {
            position: Position(position),
            id: format!("event-{position}"),
            stream: stream.to_owned(),
            version: 1,
            event_type: "Happened".to_owned(),
            schema_version: 1,
            recorded_at: 0,
            data: "{}".to_owned(),
            metadata: "{}".to_owned(),
        }
    }

    #[test]
    fn waiting_streams_go_to_the_letters_in_order_and_the_others_keep_their_places() {
        let events = [event(1, "a"), event(2, "b"), event(3, "a"), event(4, "c")];
        let mut parked = Parked::default();
        assert_eq!(*parked.divide(&events).0, events);
        parked.park("a");
        let (free, waiting) = parked.divide(&events);
        assert_eq!(*free, [events[1].clone(), events[3].clone()]);
        let letters: Vec<_> = waiting
            .letters
            .iter()
            .map(|letter| (letter.position.0, letter.parked, letter.attempts))
            .collect();
        assert_eq!(letters, [(1, true, 0), (3, true, 0)]);
        let named = Failure {
            event: Some(1),
            ..Failure::transient("why")
        };
        assert_eq!(waiting.name(named.clone()).event, Some(3));
        assert_eq!(Waiting::default().name(named).event, Some(1));
    }
}
