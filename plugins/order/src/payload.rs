//! The payloads of the order events. An absent field and null are the same; unknown fields are ignored.

use projection_domain::payload;
use projector_sdk::{Integer, Timestamp, Uuid, words};

words! {
    /// Where an order stands.
    pub enum Status {
        /// Not yet confirmed.
        Pending = "pending",
        /// Agreed with the customer.
        Confirmed = "confirmed",
        /// Looking for a worker.
        Dispatching = "dispatching",
        /// The worker is there.
        InService = "in_service",
        /// Done.
        Completed = "completed",
        /// Called off.
        Cancelled = "cancelled",
    }
}

words! {
    /// Whether an order was paid for.
    pub enum SettlementStatus {
        /// Not yet.
        Unsettled = "unsettled",
        /// Paid.
        Settled = "settled",
    }
}

payload! {
    /// `OrderCreated`
    pub struct Created [order_uuid] {
        operator_uuid: Option<Uuid>,
        request_id: Option<Uuid>,
        customer_uuid: Option<Uuid>,
        scheduled_start_at: Option<Timestamp>,
        scheduled_end_at: Option<Timestamp>,
        status: Status,
        cancellation_reason: Option<String>,
        completed_at: Option<Timestamp>,
        settlement_status: SettlementStatus,
        amount_cents: Integer,
        paid_amount_cents: Option<Integer>,
        payment_method: Option<String>,
        paid_at: Option<Timestamp>,
        notes: Option<String>,
        dispatch_note: Option<String>,
        settlement_note: Option<String>,
        inserted_at: Timestamp,
        updated_at: Timestamp,
    }
}

payload! {
    /// `OrderDetailsUpdated`
    pub struct DetailsUpdated [order_uuid] {
        operator_uuid: Option<Uuid>,
        customer_uuid: Option<Uuid>,
        amount_cents: Integer,
        notes: Option<String>,
        updated_at: Timestamp,
    }
}

payload! {
    /// `OrderStatusChanged`
    pub struct StatusChanged [order_uuid] {
        operator_uuid: Option<Uuid>,
        status: Status,
        completed_at: Option<Timestamp>,
        updated_at: Timestamp,
    }
}

payload! {
    /// `OrderCancelled`
    pub struct Cancelled [order_uuid] {
        operator_uuid: Option<Uuid>,
        cancellation_reason: String,
        updated_at: Timestamp,
    }
}

payload! {
    /// `OrderAssignmentUpdated`
    pub struct AssignmentUpdated [order_uuid] {
        operator_uuid: Option<Uuid>,
        scheduled_start_at: Option<Timestamp>,
        scheduled_end_at: Option<Timestamp>,
        dispatch_note: Option<String>,
        updated_at: Timestamp,
    }
}

payload! {
    /// `OrderSettlementUpdated`
    pub struct SettlementUpdated [order_uuid] {
        operator_uuid: Option<Uuid>,
        settlement_status: SettlementStatus,
        settlement_note: Option<String>,
        paid_amount_cents: Option<Integer>,
        payment_method: Option<String>,
        paid_at: Option<Timestamp>,
        updated_at: Timestamp,
    }
}
