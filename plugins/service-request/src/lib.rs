//! The `service-request` projection: what customers asked for, and how many requests stand in each status.
//!
//! It promises that `request_funnel` equals a `group by` over `service_requests` after every event, and that nothing
//! it writes depends on how events are cut into batches.

mod event;
mod payload;
mod tables;
mod update;

use projector_sdk::prelude::*;

use event::RequestEvent;

/// The projection.
pub struct ServiceRequests;

/// It has no settings; `config` must be empty.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {}

impl Projection for ServiceRequests {
    type Input = RequestEvent;

    fn new(config: &Config) -> Result<Self, String> {
        let Settings {} = config.read()?;
        Ok(Self)
    }

    fn describe(&self) -> Description {
        tables::describe()
    }

    fn decode(&self, event: &Event) -> Result<Option<RequestEvent>, Failure> {
        RequestEvent::decode(event)
    }

    fn lookups(&self, _: &Event, input: &RequestEvent, keys: &mut Keys) {
        keys.add(tables::request(input.request));
    }

    fn handle(&self, _: &Event, input: RequestEvent, rows: &mut Rows<'_>) -> Result<(), Failure> {
        update::apply(input, rows)
    }
}

projector_sdk::export!(ServiceRequests);
