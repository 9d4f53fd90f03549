//! The component's side of the contract: one projection per instance, made by `describe`.

use std::cell::RefCell;
use std::rc::Rc;

use crate::batch;
use crate::bindings::exports::projector::projection::manifest;
use crate::config::Config;
use crate::contract::{Failure as ContractFailure, Found, List, LookupError, RowKey, Write};
use crate::event::Event;
use crate::failure::Failure;
use crate::log;
use crate::projection::Projection;
use crate::rows::ReadModel;
use crate::schema::Schema;

/// The instance's projection. [`export!`](crate::export!) keeps one in a thread-local.
pub struct Guest<P> {
    loaded: RefCell<Option<(P, Rc<Schema>)>>,
}

impl<P: Projection> Guest<P> {
    /// An instance that was not described yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            loaded: RefCell::new(None),
        }
    }

    /// Makes the projection from its configuration.
    ///
    /// # Errors
    ///
    /// What the projection says against its configuration, or what is wrong with its description.
    pub fn describe(&self, config: &str) -> Result<manifest::Description, String> {
        report_panics();
        let projection = P::new(&Config::from_json(config))?;
        let description = projection.describe();
        let schema = Schema::new(&description)?;
        self.loaded.replace(Some((projection, Rc::new(schema))));
        Ok(description.to_contract())
    }

    /// Handles a batch.
    ///
    /// # Errors
    ///
    /// The first failure in the order of events; fatal when `describe` did not come first, since the projection
    /// would not know its configuration.
    pub fn project(&self, events: &[Event]) -> Result<List<Write>, ContractFailure> {
        let loaded = self.loaded.borrow();
        let Some((projection, schema)) = loaded.as_ref() else {
            return Err(
                Failure::fatal("not-described", "`describe` must come before `project`").at(None),
            );
        };
        batch::run(projection, schema, &Host, events).map(List::from)
    }
}

impl<P: Projection> Default for Guest<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// The rows that the host answers.
struct Host;

impl ReadModel for Host {
    #[cfg(target_arch = "wasm32")]
    fn get(&self, keys: &[RowKey]) -> Result<Found, LookupError> {
        crate::contract::boundary::get(keys)
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn get(&self, _: &[RowKey]) -> Result<Found, LookupError> {
        unreachable!("there is no host outside a component")
    }
}

/// A panic becomes a trap without words; the log gets them first.
fn report_panics() {
    if cfg!(target_arch = "wasm32") {
        std::panic::set_hook(Box::new(|panic| log::error(&panic.to_string())));
    }
}

#[cfg(test)]
mod tests {
    use super::Guest;
    use crate::contract::{Failure as ContractFailure, List};
    use crate::prelude::*;

    struct Empty;

    impl Projection for Empty {
        type Input = ();

        fn new(config: &Config) -> Result<Self, String> {
            match config.json() {
                "{}" => Ok(Self),
                other => Err(format!("no setting is known: {other}")),
            }
        }

        fn describe(&self) -> Description {
            let table = Table::new("things")
                .column("id", ColumnType::Text)
                .primary_key(["id"]);
            Description::new("empty", "1.2")
                .events(["Seen"])
                .streams(["s-"])
                .table(table)
        }

        fn decode(&self, _: &Event) -> Result<Option<()>, Failure> {
            Ok(None)
        }

        fn handle(&self, _: &Event, (): (), _: &mut Rows<'_>) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[test]
    fn a_batch_before_the_description_is_fatal() {
        let guest = Guest::<Empty>::new();
        match guest.project(&[]) {
            Err(ContractFailure::Fatal(fault)) => assert_eq!(fault.code, "not-described"),
            other => panic!("{other:?}"),
        }
        assert!(
            guest
                .describe(r#"{"x":1}"#)
                .is_err_and(|message| message.contains('x'))
        );
        assert!(guest.project(&[]).is_err());
        assert!(guest.describe("").is_ok());
        assert_eq!(guest.project(&[]).ok(), Some(List::new(&[])));
    }

    #[test]
    fn the_description_says_what_was_built() {
        let description = Guest::<Empty>::new()
            .describe("{}")
            .unwrap_or_else(|message| panic!("{message}"));
        assert_eq!(
            (description.name.as_str(), description.version.as_str()),
            ("empty", "1.2")
        );
        assert_eq!(description.subscription.types, ["Seen"]);
        assert_eq!(description.subscription.stream_prefixes, ["s-"]);
        assert!(!description.reads);
        assert_eq!(description.tables[0].primary_key, ["id"]);
        assert_eq!(description.tables[0].columns[0].column_type, "text");
        assert!(
            description
                .options
                .iter()
                .any(|(name, value)| name == "sdk" && value.starts_with("rust/"))
        );
    }
}
