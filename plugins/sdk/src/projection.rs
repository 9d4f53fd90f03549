//! What an author writes.

use crate::config::Config;
use crate::description::Description;
use crate::event::Event;
use crate::failure::Failure;
use crate::key::Keys;
use crate::rows::Rows;

/// A projection: it decodes events and turns them into writes on its own tables.
///
/// Every batch runs in a fresh instance of the component, so nothing kept in `self` outlives a batch: what a
/// projection wants to remember goes into its tables. The SDK takes a batch through three steps: every event is
/// [decoded](Self::decode); the rows that all of them will need are [named](Self::lookups) and fetched at once;
/// then each is [handled](Self::handle) in order. A large batch goes through them some thousands of events at a time.
/// Whatever fails first in the order of events fails the batch and names its event.
pub trait Projection: Sized {
    /// What an event is decoded into.
    type Input;

    /// Makes the projection from the `config` of the host's configuration.
    ///
    /// # Errors
    ///
    /// A text for people; the host then refuses the plugin.
    fn new(config: &Config) -> Result<Self, String>;

    /// Its name, the events it wants and its tables. It may depend on the configuration.
    fn describe(&self) -> Description;

    /// Reads an event; `None` passes it over. Everything that can be said of the event alone is checked here,
    /// before any row is looked up.
    ///
    /// # Errors
    ///
    /// A failure that names what is wrong with the event.
    fn decode(&self, event: &Event) -> Result<Option<Self::Input>, Failure>;

    /// Names the rows that [`handle`](Self::handle) will ask for, so that a whole batch costs one query. A row that
    /// was not named here can still be asked for; it then costs a query of its own.
    fn lookups(&self, event: &Event, input: &Self::Input, keys: &mut Keys) {
        let _ = (event, input, keys);
    }

    /// Turns an event into writes.
    ///
    /// # Errors
    ///
    /// A failure that says why this event cannot pass.
    fn handle(&self, event: &Event, input: Self::Input, rows: &mut Rows<'_>)
    -> Result<(), Failure>;
}
