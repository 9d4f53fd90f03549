//! Given events, expect rows: runs a projection natively, without a component, a host or a database.
//!
//! [`Harness::project`] does what the host does: it hands over the wanted events in batches, each to a fresh
//! instance of the projection, applies the writes to tables in memory, splits a batch that fails until one event
//! fails alone, and stops there. It does so with batches of 1, 7 and 500 events and panics when the rows differ.

mod check;
mod model;

use std::marker::PhantomData;
use std::rc::Rc;

use crate::contract::{Failure as ContractFailure, Text};
use crate::{Config, Event, Kind, Projection, batch, schema::Schema};

use model::Refused;
pub use model::Tables;

/// The batch sizes that must come out the same.
const BATCH_SIZES: [usize; 3] = [1, 7, 500];

/// An event with a payload. Its position and the rest can be set; a position of 0 means the next one.
#[must_use]
pub fn event(stream: &str, event_type: &str, data: &str) -> Event {
    Event {
        position: 0,
        id: Text::new(""),
        stream: Text::copy(stream),
        version: 0,
        event_type: Text::copy(event_type),
        schema_version: 1,
        recorded_at: 0,
        data: Text::copy(data),
        metadata: Text::new("{}"),
    }
}

/// Where and why a projection stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct Stop {
    /// Position of the event that did not pass.
    pub position: u64,
    /// The class of the failure; writes that do not fit their table are rejected.
    pub kind: Kind,
    /// The failure's word; `bad-write` when the tables refused what the projection wrote.
    pub code: String,
    /// The text for people.
    pub message: String,
}

/// What came of the events.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    tables: Tables,
    stop: Option<Stop>,
}

impl Outcome {
    /// The rows after all events.
    ///
    /// # Panics
    ///
    /// When an event did not pass.
    #[must_use]
    pub fn rows(self) -> Tables {
        assert!(
            self.stop.is_none(),
            "an event did not pass: {:?}",
            self.stop
        );
        self.tables
    }

    /// Where it stopped, and the rows up to there.
    ///
    /// # Panics
    ///
    /// When every event passed.
    #[must_use]
    pub fn stopped(self) -> (Stop, Tables) {
        match self.stop {
            Some(stop) => (stop, self.tables),
            None => panic!("every event passed"),
        }
    }

    fn difference(&self, other: &Self) -> Option<String> {
        if self.stop != other.stop {
            return Some(format!("{:?} and {:?}", self.stop, other.stop));
        }
        self.tables.difference(&other.tables)
    }
}

/// Runs a projection on events.
#[derive(Debug)]
pub struct Harness<P> {
    config: Config,
    projection: PhantomData<P>,
}

impl<P: Projection> Harness<P> {
    /// A harness with this `config`, as JSON text.
    #[must_use]
    pub fn new(config: &str) -> Self {
        Self {
            config: Config::from_json(config),
            projection: PhantomData,
        }
    }

    /// Runs the events and gives the rows, which are the same for every batch size.
    ///
    /// # Panics
    ///
    /// When the rows depend on the batch size, the positions do not rise or the projection refuses its
    /// configuration.
    #[must_use]
    pub fn project(&self, events: &[Event]) -> Outcome {
        let events = numbered(events);
        let [first, others @ ..] = BATCH_SIZES;
        let outcome = self.project_by(&events, first);
        for size in others {
            let other = self.project_by(&events, size);
            if let Some(difference) = outcome.difference(&other) {
                panic!("batches of {first} and of {size} differ: {difference}");
            }
        }
        outcome
    }

    fn project_by(&self, events: &[Event], size: usize) -> Outcome {
        let (projection, schema) = self.instance();
        let description = projection.describe();
        let wanted: Vec<Event> = events
            .iter()
            .filter(|event| description.wants(&event.event_type, &event.stream))
            .copied()
            .collect();
        let mut tables = Tables::new(&schema);
        let stop = wanted
            .chunks(size)
            .find_map(|batch| self.commit(batch, &mut tables).err());
        Outcome { tables, stop }
    }

    /// Applies a batch, or the part of it before the event that does not pass.
    fn commit(&self, events: &[Event], tables: &mut Tables) -> Result<(), Stop> {
        let (projection, schema) = self.instance();
        let done = batch::run(&projection, &schema, tables, events)
            .map_err(|failure| stopped(events, failure))
            .and_then(|writes| {
                tables
                    .apply(&writes, events)
                    .map_err(|refused| refused_write(events, refused))
            });
        match done {
            Ok(()) => Ok(()),
            Err(_) if events.len() > 1 => {
                let (first, second) = events.split_at(events.len() / 2);
                self.commit(first, tables)?;
                self.commit(second, tables)
            }
            Err(stop) => Err(stop),
        }
    }

    fn instance(&self) -> (P, Rc<Schema>) {
        let made = P::new(&self.config).and_then(|projection| {
            let schema = Schema::new(&projection.describe())?;
            Ok((projection, Rc::new(schema)))
        });
        match made {
            Ok(made) => made,
            Err(message) => panic!("{message}"),
        }
    }
}

fn numbered(events: &[Event]) -> Vec<Event> {
    let mut last = 0;
    events
        .iter()
        .map(|event| {
            let mut event = *event;
            if event.position == 0 {
                event.position = last + 1;
            }
            assert!(
                event.position > last,
                "position {} follows {last}",
                event.position
            );
            last = event.position;
            event
        })
        .collect()
}

fn stopped(events: &[Event], failure: ContractFailure) -> Stop {
    let (kind, fault) = match failure {
        ContractFailure::Retry(fault) => (Kind::Retry, fault),
        ContractFailure::Rejected(fault) => (Kind::Rejected, fault),
        ContractFailure::Fatal(fault) => (Kind::Fatal, fault),
    };
    let index = fault.event.into_option().map_or(0, |event| event as usize);
    Stop {
        position: events[index].position,
        kind,
        code: fault.code.to_string(),
        message: fault.message.to_string(),
    }
}

fn refused_write(events: &[Event], refused: Refused) -> Stop {
    Stop {
        position: events[refused.event].position,
        kind: Kind::Rejected,
        code: "bad-write".to_owned(),
        message: refused.message,
    }
}
