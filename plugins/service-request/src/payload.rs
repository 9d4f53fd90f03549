//! The payloads of the service request events. An absent field and null are the same; unknown fields are ignored.

use projection_domain::payload;
use projector_sdk::{Timestamp, Uuid, words};

words! {
    /// Where a request stands.
    pub enum Status {
        /// Just came in.
        New = "new",
        /// Agreed with the customer.
        Confirmed = "confirmed",
        /// Became an order.
        Converted = "converted",
        /// Called off.
        Cancelled = "cancelled",
    }
}

payload! {
    /// `ServiceRequestCreated`
    pub struct Created [request_uuid] {
        customer_uuid: Uuid,
        creator_uuid: Uuid,
        service_catalog_uuid: Option<Uuid>,
        service_content: String,
        appointment_start_at: Option<Timestamp>,
        appointment_end_at: Option<Timestamp>,
        status: Status,
        source: String,
        notes: Option<String>,
        inserted_at: Timestamp,
        updated_at: Timestamp,
    }
}

payload! {
    /// `ServiceRequestDetailsUpdated`
    pub struct DetailsUpdated [request_uuid] {
        service_catalog_uuid: Option<Uuid>,
        service_content: String,
        appointment_start_at: Option<Timestamp>,
        appointment_end_at: Option<Timestamp>,
        notes: Option<String>,
        updated_at: Timestamp,
    }
}

payload! {
    /// `ServiceRequestStatusChanged`
    pub struct StatusChanged [request_uuid] {
        status: Status,
        updated_at: Timestamp,
    }
}
