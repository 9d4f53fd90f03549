//! One batch from events to writes.

use std::rc::Rc;

use crate::contract::{Failure as ContractFailure, Write};
use crate::event::Event;
use crate::key::Keys;
use crate::projection::Projection;
use crate::rows::{ReadModel, Rows};
use crate::schema::Schema;

/// How many events are decoded before they are handled: enough that look-ups are few, and so few that what the events
/// were decoded into takes little memory. Fewer outside a component, so that tests always go over the end.
const DECODED_MAX: usize = if cfg!(target_arch = "wasm32") {
    4_096
} else {
    100
};

/// Decodes, looks up, handles, some thousands of events at a time. The first failure in the order of events is the
/// batch's.
pub(crate) fn run<P: Projection>(
    projection: &P,
    schema: &Rc<Schema>,
    read_model: &dyn ReadModel,
    events: &[Event],
) -> Result<Vec<Write>, ContractFailure> {
    let mut rows = Rows::new(read_model, Rc::clone(schema), events);
    let mut inputs = Vec::with_capacity(events.len().min(DECODED_MAX));
    let mut keys = Keys::default();
    for (part, events) in events.chunks(DECODED_MAX).enumerate() {
        let first = part * DECODED_MAX;
        let mut undecoded = None;
        for event in events {
            match projection.decode(event) {
                Ok(input) => inputs.push(input),
                Err(failure) => {
                    undecoded = Some(failure.at(Some(first + inputs.len())));
                    break;
                }
            }
        }
        for (index, (event, input)) in events.iter().zip(&inputs).enumerate() {
            if let Some(input) = input {
                keys.begin(first + index);
                projection.lookups(event, input, &mut keys);
            }
        }
        rows.prefetch(&mut keys);
        for (index, (event, input)) in events.iter().zip(inputs.drain(..)).enumerate() {
            if let Some(input) = input {
                rows.begin(first + index);
                projection
                    .handle(event, input, &mut rows)
                    .map_err(|failure| failure.at(Some(first + index)))?;
            }
        }
        if let Some(failure) = undecoded {
            return Err(failure);
        }
    }
    Ok(rows.finish())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::{DECODED_MAX, run};
    use crate::contract::{Found, LookupError, Maybe, RowKey, Text};
    use crate::prelude::*;
    use crate::rows::ReadModel;
    use crate::schema::Schema;
    use crate::testing::event;

    /// Reads one row an event, which it announced unless the stream is `late`; in the stream `write` it only writes it.
    struct Reader;

    fn row(event: &Event) -> Key {
        Key::new("things").part("id", event.data)
    }

    impl Projection for Reader {
        type Input = ();

        fn new(_: &Config) -> Result<Self, String> {
            Ok(Self)
        }

        fn describe(&self) -> Description {
            let table = Table::new("things")
                .column("id", ColumnType::Text)
                .primary_key(["id"]);
            Description::new("reader", "1").reads().table(table)
        }

        fn decode(&self, _: &Event) -> Result<Option<()>, Failure> {
            Ok(Some(()))
        }

        fn lookups(&self, event: &Event, (): &(), keys: &mut Keys) {
            if event.stream == "s" {
                keys.add(row(event));
            }
        }

        fn handle(&self, event: &Event, (): (), rows: &mut Rows<'_>) -> Result<(), Failure> {
            if event.stream == "write" {
                rows.row(&row(event)).merge();
                return Ok(());
            }
            rows.get(&row(event)).map(|_| ())
        }
    }

    /// No rows; remembers how many keys each call asked for.
    struct Counting {
        keys_max: usize,
        calls: RefCell<Vec<usize>>,
    }

    impl ReadModel for Counting {
        fn get(&self, keys: &[RowKey]) -> Result<Found, LookupError> {
            self.calls.borrow_mut().push(keys.len());
            if keys.len() > self.keys_max {
                return Err(LookupError::TooMany(Text::new("")));
            }
            Ok(vec![Maybe::None; keys.len()].into())
        }
    }

    fn check(events: &[Event], keys_max: usize, expected: &[usize]) {
        let schema = Schema::new(&Reader.describe())
            .map(Rc::new)
            .expect("the description is sound");
        let read_model = Counting {
            keys_max,
            calls: RefCell::default(),
        };
        assert!(run(&Reader, &schema, &read_model, events).is_ok());
        assert_eq!(*read_model.calls.borrow(), expected);
    }

    #[test]
    fn a_batch_costs_one_lookup_as_far_as_the_host_allows() {
        let events: Vec<Event> = (0..40)
            .map(|id| event("s", "Seen", &(id % 20).to_string()))
            .collect();
        check(&events, 100, &[20]);
        check(&events, 10, &[20, 10, 10]);
        check(&[], 10, &[]);
    }

    #[test]
    fn rows_that_were_only_written_are_fetched_with_the_others() {
        let part = DECODED_MAX;
        let events: Vec<Event> = (0..2 * part)
            .map(|at| match at {
                0 => event("s", "Seen", "-1"),
                at if at < part => event("write", "Seen", &(at % 20).to_string()),
                at => event("s", "Seen", &(at % 30).to_string()),
            })
            .collect();
        check(&events, 100, &[1, 30]);
    }

    #[test]
    fn a_row_that_was_not_announced_costs_one_lookup_of_its_own() {
        let late = event("late", "Seen", "7");
        check(&[late, late], 100, &[1]);
    }
}
