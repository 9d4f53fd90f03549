//! Write projections for projector-host in Rust.
//!
//! A projection is a type that implements [`Projection`], exported with [`export!`]. The SDK owns the loop over a
//! batch, the lookups, the rows as the batch changes them, and the mapping of errors; the author decodes an event
//! and says what it does to the tables.
//!
//! ```
//! use projector_sdk::prelude::*;
//!
//! struct Tickets;
//!
//! #[derive(serde::Deserialize)]
//! struct Opened {
//!     id: Uuid,
//!     title: String,
//!     at: Timestamp,
//! }
//!
//! impl Projection for Tickets {
//!     type Input = Opened;
//!
//!     fn new(_: &Config) -> Result<Self, String> {
//!         Ok(Self)
//!     }
//!
//!     fn describe(&self) -> Description {
//!         Description::new("tickets", env!("CARGO_PKG_VERSION")).events(["TicketOpened"]).table(
//!             Table::new("tickets")
//!                 .column("id", ColumnType::Uuid)
//!                 .column("title", ColumnType::Text)
//!                 .column("opened_at", ColumnType::Timestamptz)
//!                 .primary_key(["id"]),
//!         )
//!     }
//!
//!     fn decode(&self, event: &Event) -> Result<Option<Opened>, Failure> {
//!         event.data().map(Some)
//!     }
//!
//!     fn handle(&self, _: &Event, opened: Opened, rows: &mut Rows<'_>) -> Result<(), Failure> {
//!         rows.table("tickets")
//!             .key("id", opened.id)
//!             .set("title", opened.title)
//!             .set("opened_at", opened.at)
//!             .insert();
//!         Ok(())
//!     }
//! }
//!
//! projector_sdk::export!(Tickets);
//!
//! # use projector_sdk::testing::{Harness, event};
//! let data = r#"{"id":"0A1B2C3D-4E5F-6789-ABCD-EF0123456789","title":"Leak","at":"2026-03-01T08:30:00.000Z"}"#;
//! let tables = Harness::<Tickets>::new("{}").project(&[event("ticket-1", "TicketOpened", data)]).rows();
//! assert_eq!(
//!     tables.json("tickets"),
//!     [r#"{"id":"0a1b2c3d-4e5f-6789-abcd-ef0123456789","title":"Leak","opened_at":"2026-03-01T08:30:00Z"}"#],
//! );
//! ```

#[cfg(any(target_arch = "wasm32", test))]
mod allocator;
mod batch;
#[doc(hidden)]
pub mod bindings;
mod canonical;
mod change;
mod config;
mod contract;
mod description;
mod event;
mod export;
mod failure;
mod guest;
mod key;
pub mod log;
pub mod prelude;
mod projection;
mod row;
mod rows;
mod schema;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod types;
mod value;
mod word;

pub use config::Config;
pub use contract::{List, Text};
pub use description::{ColumnType, Description, Table};
pub use event::Event;
pub use failure::{Failure, Kind};
pub use key::{Key, KeyValue, Keys};
pub use projection::Projection;
pub use row::Row;
pub use rows::{RowWrite, Rows};
pub use types::{Integer, Timestamp, Uuid};
pub use value::Value;

/// For the macros of this crate only; no part of its interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::bindings;
    #[cfg(target_arch = "wasm32")]
    pub use crate::contract::boundary;
    pub use crate::guest::Guest;
    pub use crate::word::word;
    pub use serde;
}

/// The example in the plugins' README must compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
