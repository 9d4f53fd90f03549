//! The service request events, decoded: which request, and what happened to it.

use projection_domain::Identity;
use projector_sdk::{Event, Failure};

use crate::payload::{Created, DetailsUpdated, StatusChanged};

/// The event types that this projection knows.
pub const TYPES: [&str; 3] = [
    "ServiceRequestCreated",
    "ServiceRequestDetailsUpdated",
    "ServiceRequestStatusChanged",
];

/// What happened to a request.
#[derive(Debug)]
pub enum RequestChange {
    /// It came in.
    Created(Box<Created>),
    /// What was asked for, and when.
    Details(DetailsUpdated),
    /// Where it stands.
    Status(StatusChanged),
}

/// An event that passed every check that needs no row.
#[derive(Debug)]
pub struct RequestEvent {
    /// Which request.
    pub request: Identity,
    /// What happened.
    pub change: RequestChange,
}

impl RequestEvent {
    /// Reads an event; `None` for types that this projection does not know.
    pub fn decode(event: &Event) -> Result<Option<Self>, Failure> {
        let (request, change) = match event.event_type.as_str() {
            "ServiceRequestCreated" => {
                let created: Created = event.data()?;
                (
                    created.identity()?,
                    RequestChange::Created(Box::new(created)),
                )
            }
            "ServiceRequestDetailsUpdated" => {
                let updated: DetailsUpdated = event.data()?;
                (updated.identity()?, RequestChange::Details(updated))
            }
            "ServiceRequestStatusChanged" => {
                let changed: StatusChanged = event.data()?;
                (changed.identity()?, RequestChange::Status(changed))
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { request, change }))
    }
}
