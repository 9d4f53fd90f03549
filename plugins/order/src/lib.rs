//! The `order` projection: the orders as they stand, a log of what changed in each, and totals by status.
//!
//! It promises that `order_totals` equals a `group by` over `orders` after every event, and that nothing it writes
//! depends on how events are cut into batches. It never refuses a transition: the log of events is the truth.

mod change_log;
mod event;
mod payload;
mod tables;
mod totals;
mod update;

use projector_sdk::prelude::*;

use change_log::ChangeLog;
use event::{Happened, OrderEvent};

/// The projection.
pub struct Orders {
    change_log: ChangeLog,
}

/// `config` of this projection.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    /// Whether `order_change_logs` is kept.
    change_logs: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { change_logs: true }
    }
}

impl Projection for Orders {
    type Input = OrderEvent;

    fn new(config: &Config) -> Result<Self, String> {
        let settings: Settings = config.read()?;
        Ok(Self {
            change_log: ChangeLog::new(settings.change_logs),
        })
    }

    fn describe(&self) -> Description {
        tables::describe(self.change_log.is_kept())
    }

    fn decode(&self, event: &Event) -> Result<Option<OrderEvent>, Failure> {
        OrderEvent::decode(event)
    }

    fn lookups(&self, _: &Event, input: &OrderEvent, keys: &mut Keys) {
        keys.add(tables::order(input.order));
    }

    fn handle(&self, _: &Event, input: OrderEvent, rows: &mut Rows<'_>) -> Result<(), Failure> {
        match input.happened {
            Happened::Created(created) => {
                update::create(input.order, *created, &self.change_log, rows)
            }
            Happened::Changed(change) => {
                update::change(input.order, change, &self.change_log, rows)
            }
        }
    }
}

projector_sdk::export!(Orders);
