//! An event as the store holds it, and where it stands.

use std::fmt;

pub use super::anchor::Anchor;

/// Where an event stands in the store. Positions rise from 1; 0 is before the first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub i64);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One event, as read from the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Place in the store.
    pub position: Position,
    /// The event's own identifier, as text.
    pub id: String,
    /// The stream that it belongs to.
    pub stream: String,
    /// Place within the stream, from 1; 0 when the store has none.
    pub version: i64,
    /// The event's type.
    pub event_type: String,
    /// Version of the payload's shape.
    pub schema_version: i32,
    /// Microseconds since 1970-01-01T00:00:00Z.
    pub recorded_at: i64,
    /// JSON text.
    pub data: String,
    /// JSON text, `{}` when the store has none.
    pub metadata: String,
}

/// Which events a projection wants: a listed type (or any, when none is listed) in a stream that begins with
/// one of the prefixes (or any, when there is none).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subscription {
    /// Event types; empty means all.
    pub types: Vec<String>,
    /// Beginnings of stream names; empty means all.
    pub stream_prefixes: Vec<String>,
}

impl Subscription {
    /// Whether an event of this type in this stream is wanted.
    #[must_use]
    pub fn wants(&self, event_type: &str, stream: &str) -> bool {
        (self.types.is_empty() || self.types.iter().any(|wanted| wanted == event_type))
            && (self.stream_prefixes.is_empty()
                || self
                    .stream_prefixes
                    .iter()
                    .any(|prefix| stream.starts_with(prefix.as_str())))
    }
}

/// What one read returned: the wanted events of a stretch of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The stretch begins after this position.
    pub after: Position,
    /// The stretch ends here: everything up to it is settled and was scanned, wanted or not. Progress is
    /// this position, never more.
    pub upto: Position,
    /// The last event of the stretch, wanted or not; none when nothing stands in it.
    pub anchor: Option<Anchor>,
    /// The wanted events, in position order.
    pub events: Vec<Event>,
}

impl Event {
    /// By which the store is known again, as long as no later event was read.
    #[must_use]
    pub fn anchor(&self) -> Anchor {
        Anchor {
            position: self.position,
            id: self.id.clone(),
        }
    }
}

/// Makes sure that events continue a stretch: their positions rise, all of them after `after` and up to `upto`.
///
/// # Errors
/// At the first one that does not.
pub(super) fn check_order(
    after: Position,
    events: &[Event],
    upto: Position,
) -> Result<(), super::error::Error> {
    let mut last = after;
    for event in events {
        if event.position <= last {
            return Err(super::error::Error::out_of_order(event.position, last));
        }
        last = event.position;
    }
    if last > upto {
        return Err(super::error::Error::out_of_order(upto, last));
    }
    Ok(())
}
