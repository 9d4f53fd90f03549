//! Reading on a real PostgreSQL: gaps, filters, bounds, wake-up, and stores that must be refused.

#[path = "event_store/bounds.rs"]
mod bounds;
#[path = "event_store/cuts.rs"]
mod cuts;
#[path = "event_store/edited.rs"]
mod edited;
#[path = "event_store/faults.rs"]
mod faults;
#[path = "event_store/gaps.rs"]
mod gaps;
#[path = "event_store/refusals.rs"]
mod refusals;
#[path = "event_store/soak.rs"]
mod soak;
#[path = "event_store/support.rs"]
mod support;
#[path = "event_store/wakeup.rs"]
mod wakeup;
