//! One batch from events to writes.

use std::rc::Rc;

use crate::bindings::projector::projection::types::{Event, Failure as ContractFailure, Write};
use crate::key::Keys;
use crate::projection::Projection;
use crate::rows::{ReadModel, Rows};
use crate::schema::Schema;

/// Decodes, looks up, handles. The first failure in the order of events is the batch's.
pub(crate) fn run<P: Projection>(
    projection: &P,
    schema: &Rc<Schema>,
    read_model: &dyn ReadModel,
    events: &[Event],
) -> Result<Vec<Write>, ContractFailure> {
    let mut inputs = Vec::with_capacity(events.len());
    let mut undecoded = None;
    for event in events {
        match projection.decode(event) {
            Ok(input) => inputs.push(input),
            Err(failure) => {
                undecoded = Some(failure.at(Some(inputs.len())));
                break;
            }
        }
    }
    let mut keys = Keys::default();
    for (event, input) in events.iter().zip(&inputs) {
        if let Some(input) = input {
            projection.lookups(event, input, &mut keys);
        }
    }
    let mut rows = Rows::new(read_model, Rc::clone(schema), events);
    rows.prefetch(keys);
    for (index, (event, input)) in events.iter().zip(inputs).enumerate() {
        if let Some(input) = input {
            rows.begin(index);
            projection
                .handle(event, input, &mut rows)
                .map_err(|failure| failure.at(Some(index)))?;
        }
    }
    match undecoded {
        Some(failure) => Err(failure),
        None => Ok(rows.finish()),
    }
}
