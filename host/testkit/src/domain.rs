//! The shipped projections, told a second time: what their tables must hold after given events.
//!
//! Written from the description of the domain and from nothing else: it shares no code with the plugins, so that a
//! mistake there is not repeated here. It is slow and plain on purpose.

mod compare;
mod events;
mod fields;
mod generator;
mod ledger;
mod orders;
mod requests;
mod scheduling;
mod table;

pub use compare::{compare, difference};
pub use events::{Event, Poison};
pub use generator::{Draft, Generator};
pub use table::{Kind, Layout, Row, Table};

use orders::Orders;
use requests::Requests;
use scheduling::Scheduling;

/// One projection, folded event by event.
pub trait Projection {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Applies an event, or refuses it and stays as it was.
    fn apply(&mut self, event: &Event) -> Result<(), Poison>;

    /// All its tables as they must stand.
    fn tables(&self) -> Vec<Table>;
}

/// The names of the shipped projections, in the order of their names.
pub const PROJECTIONS: [&str; 3] = ["order", "scheduling", "service-request"];

/// An empty projection of this name.
///
/// # Panics
/// When there is none.
pub fn projection(name: &str) -> Box<dyn Projection> {
    match name {
        "order" => Box::new(Orders::default()),
        "scheduling" => Box::new(Scheduling::default()),
        "service-request" => Box::new(Requests::default()),
        other => panic!("there is no projection {other}"),
    }
}

/// Folds all events up to a position, that one included.
///
/// # Errors
/// At the first event that cannot pass.
pub fn fold(name: &str, events: &[Event], upto: i64) -> Result<Vec<Table>, Poison> {
    let mut projection = projection(name);
    for event in events.iter().filter(|event| event.position <= upto) {
        projection.apply(event)?;
    }
    Ok(projection.tables())
}
