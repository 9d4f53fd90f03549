//! A customer asks for a service; most requests become an order, some become two.

use serde_json::Value;

use super::{Teller, order};
use crate::sample::{
    event::{fields, time},
    words,
};

/// From the call to the orders.
pub fn tell(teller: &mut Teller<'_>) {
    let request = teller.random.uuid();
    let customer = teller.customer();
    created(teller, &request, &customer);
    if teller.random.in_a_thousand(250) {
        teller.wait(5, 600);
        details(teller, &request);
    }
    teller.wait(10, 900);
    if teller.random.in_a_thousand(120) {
        status(teller, &request, "cancelled");
        return;
    }
    status(teller, &request, "confirmed");
    if teller.random.in_a_thousand(60) {
        return; // never heard of again
    }
    teller.wait(10, 600);
    status(teller, &request, "converted");
    let begin = teller.now;
    order::tell(teller, Some(&request), &customer);
    if teller.random.in_a_thousand(50) {
        teller.now = begin;
        teller.wait(1, 30);
        order::tell(teller, Some(&request), &customer);
    }
}

fn created(teller: &mut Teller<'_>, request: &str, customer: &str) {
    let (start, end) = teller.window();
    let creator = teller.random.pick(&teller.merchant.operators).as_str();
    let service = teller.random.pick(&teller.merchant.services).as_str();
    let content = *teller.random.pick(&words::SERVICES);
    let source = *teller.random.pick(&words::SOURCES);
    let at = teller.clock();
    let data = fields([
        ("request_uuid", request.into()),
        ("customer_uuid", customer.into()),
        ("creator_uuid", creator.into()),
        ("service_catalog_uuid", service.into()),
        ("service_content", content.into()),
        ("appointment_start_at", time(start)),
        ("appointment_end_at", time(end)),
        ("status", "new".into()),
        ("source", source.into()),
        ("notes", teller.note()),
        ("inserted_at", at.clone()),
        ("updated_at", at),
    ]);
    teller.tell(stream(request), "ServiceRequestCreated", data);
}

fn details(teller: &mut Teller<'_>, request: &str) {
    let (start, end) = teller.window();
    let moved = teller.random.in_a_thousand(800);
    let when = |at| if moved { time(at) } else { Value::Null };
    let content = *teller.random.pick(&words::SERVICES);
    let data = fields([
        ("request_uuid", request.into()),
        ("service_catalog_uuid", Value::Null),
        ("service_content", content.into()),
        ("appointment_start_at", when(start)),
        ("appointment_end_at", when(end)),
        ("notes", teller.note()),
        ("updated_at", teller.clock()),
    ]);
    teller.tell(stream(request), "ServiceRequestDetailsUpdated", data);
}

fn status(teller: &mut Teller<'_>, request: &str, status: &str) {
    let data = fields([
        ("request_uuid", request.into()),
        ("status", status.into()),
        ("updated_at", teller.clock()),
    ]);
    teller.tell(stream(request), "ServiceRequestStatusChanged", data);
}

fn stream(request: &str) -> String {
    format!("service_request-{request}")
}
