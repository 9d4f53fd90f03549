//! The order events, decoded: which order, and what happened to it.

use projection_domain::Identity;
use projector_sdk::{Event, Failure, Timestamp, Uuid};

use crate::payload::{
    AssignmentUpdated, Cancelled, Created, DetailsUpdated, SettlementUpdated, StatusChanged,
};

/// The event types that this projection knows.
pub const TYPES: [&str; 6] = [
    "OrderCreated",
    "OrderDetailsUpdated",
    "OrderStatusChanged",
    "OrderCancelled",
    "OrderAssignmentUpdated",
    "OrderSettlementUpdated",
];

/// What happened.
#[derive(Debug)]
pub enum Happened {
    /// The order came to be.
    Created(Box<Created>),
    /// It was there, and changed.
    Changed(OrderChange),
}

/// How an order changed.
#[derive(Debug)]
pub enum OrderChange {
    /// Customer, amount or notes.
    Details(DetailsUpdated),
    /// Where it stands.
    Status(StatusChanged),
    /// Called off, with a reason.
    Cancelled(Cancelled),
    /// When it is to happen.
    Assignment(AssignmentUpdated),
    /// Whether and how it was paid.
    Settlement(SettlementUpdated),
}

/// An event that passed every check that needs no row.
#[derive(Debug)]
pub struct OrderEvent {
    /// Which order.
    pub order: Identity,
    /// What happened.
    pub happened: Happened,
}

impl OrderEvent {
    /// Reads an event; `None` for types that this projection does not know.
    pub fn decode(event: &Event) -> Result<Option<Self>, Failure> {
        let (order, change) = match event.event_type.as_str() {
            "OrderCreated" => {
                let created: Created = event.data()?;
                return Ok(Some(Self {
                    order: created.identity()?,
                    happened: Happened::Created(Box::new(created)),
                }));
            }
            "OrderDetailsUpdated" => {
                let updated: DetailsUpdated = event.data()?;
                (updated.identity()?, OrderChange::Details(updated))
            }
            "OrderStatusChanged" => {
                let changed: StatusChanged = event.data()?;
                (changed.identity()?, OrderChange::Status(changed))
            }
            "OrderCancelled" => {
                let cancelled: Cancelled = event.data()?;
                (cancelled.identity()?, OrderChange::Cancelled(cancelled))
            }
            "OrderAssignmentUpdated" => {
                let updated: AssignmentUpdated = event.data()?;
                (updated.identity()?, OrderChange::Assignment(updated))
            }
            "OrderSettlementUpdated" => {
                let updated: SettlementUpdated = event.data()?;
                (updated.identity()?, OrderChange::Settlement(updated))
            }
            _ => return Ok(None),
        };
        let happened = Happened::Changed(change);
        Ok(Some(Self { order, happened }))
    }
}

impl OrderChange {
    /// The word in the change log.
    pub const fn action(&self) -> &'static str {
        match self {
            Self::Details(_) => "details_updated",
            Self::Status(_) => "status_changed",
            Self::Cancelled(_) => "cancelled",
            Self::Assignment(_) => "assignment_updated",
            Self::Settlement(_) => "settlement_updated",
        }
    }

    /// Who did it.
    pub const fn operator(&self) -> Option<Uuid> {
        match self {
            Self::Details(updated) => updated.operator_uuid,
            Self::Status(changed) => changed.operator_uuid,
            Self::Cancelled(cancelled) => cancelled.operator_uuid,
            Self::Assignment(updated) => updated.operator_uuid,
            Self::Settlement(updated) => updated.operator_uuid,
        }
    }

    /// When it happened, by the event's own word.
    pub const fn changed_at(&self) -> Timestamp {
        match self {
            Self::Details(updated) => updated.updated_at,
            Self::Status(changed) => changed.updated_at,
            Self::Cancelled(cancelled) => cancelled.updated_at,
            Self::Assignment(updated) => updated.updated_at,
            Self::Settlement(updated) => updated.updated_at,
        }
    }
}
