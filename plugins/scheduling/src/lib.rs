//! The `scheduling` projection: which worker goes to which order and when, and how much each worker has to do.
//!
//! It promises that `worker_load` equals a `group by` over `schedules` after every event, and that nothing it writes
//! depends on how events are cut into batches.

mod event;
mod load;
mod payload;
mod tables;
mod update;

use projector_sdk::prelude::*;

use event::ScheduleEvent;

/// The projection.
pub struct Scheduling;

/// It has no settings; `config` must be empty.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {}

impl Projection for Scheduling {
    type Input = ScheduleEvent;

    fn new(config: &Config) -> Result<Self, String> {
        let Settings {} = config.read()?;
        Ok(Self)
    }

    fn describe(&self) -> Description {
        tables::describe()
    }

    fn decode(&self, event: &Event) -> Result<Option<ScheduleEvent>, Failure> {
        ScheduleEvent::decode(event)
    }

    fn lookups(&self, _: &Event, input: &ScheduleEvent, keys: &mut Keys) {
        keys.add(tables::schedule(input.order));
    }

    fn handle(&self, _: &Event, input: ScheduleEvent, rows: &mut Rows<'_>) -> Result<(), Failure> {
        update::apply(input, rows)
    }
}

projector_sdk::export!(Scheduling);
