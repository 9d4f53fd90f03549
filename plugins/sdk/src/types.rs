//! Field types of events whose text the host would judge, checked and made canonical in the guest.

mod decimal;
mod integer;
mod timestamp;
mod uuid;
mod words;

pub(crate) use decimal::Decimal;
pub use integer::Integer;
pub use timestamp::Timestamp;
pub use uuid::Uuid;
