//! The payloads of the schedule events. An absent field and null are the same; unknown fields are ignored. Older
//! stores name the order `order_id`.

use projection_domain::payload;
use projector_sdk::{Timestamp, Uuid, words};

words! {
    /// Where a schedule stands.
    pub enum Status {
        /// Arranged.
        Planned = "planned",
        /// The worker is there.
        InService = "in_service",
        /// Over.
        Done = "done",
        /// Called off.
        Cancelled = "cancelled",
    }
}

payload! {
    /// `ScheduleAssignmentCreated`
    pub struct Created [order_uuid | order_id] {
        schedule_uuid: Uuid,
        assigned_user_uuid: Uuid,
        start_at: Timestamp,
        end_at: Timestamp,
        status: Status,
        notes: Option<String>,
        inserted_at: Timestamp,
        updated_at: Timestamp,
    }
}

payload! {
    /// `ScheduleAssignmentUpdated`
    pub struct Updated [order_uuid | order_id] {
        assigned_user_uuid: Uuid,
        start_at: Timestamp,
        end_at: Timestamp,
        notes: Option<String>,
        updated_at: Timestamp,
    }
}

payload! {
    /// `ScheduleStatusChanged`
    pub struct StatusChanged [order_uuid | order_id] {
        status: Status,
        updated_at: Timestamp,
    }
}

payload! {
    /// `ScheduleDeleted`
    pub struct Deleted [order_uuid | order_id] {
        /// Checked like every other field, though no column holds it.
        deleted_at: Timestamp,
    }
}
