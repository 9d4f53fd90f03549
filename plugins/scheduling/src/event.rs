//! The schedule events, decoded: whose schedule, and what happened to it.

use projection_domain::Identity;
use projector_sdk::{Event, Failure};

use crate::payload::{Created, Deleted, StatusChanged, Updated};

/// The event types that this projection knows.
pub const TYPES: [&str; 4] = [
    "ScheduleAssignmentCreated",
    "ScheduleAssignmentUpdated",
    "ScheduleStatusChanged",
    "ScheduleDeleted",
];

/// What happened to a schedule.
#[derive(Debug)]
pub enum ScheduleChange {
    /// A worker was assigned for the first time, or again after a deletion.
    Created(Box<Created>),
    /// Another worker, window or note.
    Updated(Updated),
    /// Where it stands.
    Status(StatusChanged),
    /// Gone.
    Deleted,
}

/// An event that passed every check that needs no row.
#[derive(Debug)]
pub struct ScheduleEvent {
    /// The order that the schedule is for; there is one schedule an order.
    pub order: Identity,
    /// What happened.
    pub change: ScheduleChange,
}

impl ScheduleEvent {
    /// Reads an event; `None` for types that this projection does not know.
    pub fn decode(event: &Event) -> Result<Option<Self>, Failure> {
        let (order, change) = match event.event_type.as_str() {
            "ScheduleAssignmentCreated" => {
                let created: Created = event.data()?;
                (
                    created.identity()?,
                    ScheduleChange::Created(Box::new(created)),
                )
            }
            "ScheduleAssignmentUpdated" => {
                let updated: Updated = event.data()?;
                (updated.identity()?, ScheduleChange::Updated(updated))
            }
            "ScheduleStatusChanged" => {
                let changed: StatusChanged = event.data()?;
                (changed.identity()?, ScheduleChange::Status(changed))
            }
            "ScheduleDeleted" => {
                let deleted: Deleted = event.data()?;
                let _checked = deleted.deleted_at;
                (deleted.identity()?, ScheduleChange::Deleted)
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { order, change }))
    }
}
