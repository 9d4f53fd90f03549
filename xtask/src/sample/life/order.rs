//! An order: taken, planned, done, paid. And what goes wrong with orders.

use jiff::Timestamp;
use serde_json::Value;

use super::{Teller, schedule::Schedule};
use crate::sample::{
    event::{fields, time},
    words,
};

/// From the order to the payment.
pub fn tell(teller: &mut Teller<'_>, request: Option<&str>, customer: &str) {
    let mut order = Order::new(teller);
    if teller.random.in_a_thousand(10) {
        order.status(teller, "confirmed"); // overtook the creation: passed over
    }
    order.created(teller, request, customer);
    if teller.random.in_a_thousand(10) {
        order.created(teller, request, customer); // delivered twice: changes nothing
    }
    if teller.random.in_a_thousand(200) {
        teller.wait(5, 300);
        order.details(teller, customer);
    }
    teller.wait(10, 900);
    match teller.random.below(100) {
        0..=5 => {} // waits for ever
        6..=12 => order.cancelled_early(teller),
        _ => order.planned(teller),
    }
}

struct Order {
    id: String,
    amount: u64,
}

impl Order {
    fn new(teller: &mut Teller<'_>) -> Self {
        let again = !teller.known.is_empty() && teller.random.in_a_thousand(5);
        let id = if again {
            teller.random.pick(teller.known).clone()
        } else {
            teller.random.uuid()
        };
        teller.orders.push(id.clone());
        Self {
            id,
            amount: price(teller),
        }
    }

    fn cancelled_early(&self, teller: &mut Teller<'_>) {
        self.cancel(teller);
        if teller.random.in_a_thousand(100) {
            teller.wait(10, 600);
            self.settle(teller, "settled", "cancellation fee"); // settlement of a cancelled order
        }
        if teller.random.in_a_thousand(100) {
            teller.wait(10, 600);
            self.status(teller, "completed"); // completion after cancel
        }
    }

    fn planned(&self, teller: &mut Teller<'_>) {
        self.status(teller, "confirmed");
        teller.wait(5, 600);
        let mut window = teller.window();
        self.assignment(teller, window);
        let mut schedule = Schedule::create(teller, &self.id, window);
        if teller.random.in_a_thousand(120) {
            teller.wait(10, 300);
            if teller.random.in_a_thousand(500) {
                window = teller.window();
                self.assignment(teller, window);
            }
            schedule.reassign(teller, window);
        }
        if teller.random.in_a_thousand(30) {
            schedule.delete_and_create(teller, window);
        }
        teller.wait(10, 300);
        self.status(teller, "dispatching");
        if teller.random.in_a_thousand(70) {
            self.cancel(teller);
            if teller.random.in_a_thousand(500) {
                schedule.delete(teller)
            } else {
                schedule.status(teller, "cancelled")
            }
            return;
        }
        teller.wait_for(window.0);
        self.status(teller, "in_service");
        schedule.status(teller, "in_service");
        teller.wait_for(window.1);
        self.status(teller, "completed");
        schedule.status(teller, "done");
        self.paid(teller);
    }

    fn paid(&self, teller: &mut Teller<'_>) {
        if teller.random.in_a_thousand(15) {
            self.status(teller, "completed"); // the worker pressed twice
        }
        if teller.random.in_a_thousand(25) {
            teller.wait(10, 600);
            self.cancel(teller); // after completion
        }
        teller.wait(30, 2_000);
        if teller.random.in_a_thousand(850) {
            self.settle(teller, "settled", "");
        }
        if teller.random.in_a_thousand(30) {
            teller.wait(30, 2_000);
            self.settle(teller, "unsettled", "payment bounced");
        }
    }

    fn created(&self, teller: &mut Teller<'_>, request: Option<&str>, customer: &str) {
        let at = teller.clock();
        let data = fields([
            ("order_uuid", self.id.as_str().into()),
            ("operator_uuid", teller.operator()),
            ("request_id", request.map_or(Value::Null, Value::from)),
            ("customer_uuid", customer.into()),
            ("scheduled_start_at", Value::Null),
            ("scheduled_end_at", Value::Null),
            ("status", "pending".into()),
            ("cancellation_reason", Value::Null),
            ("completed_at", Value::Null),
            ("settlement_status", "unsettled".into()),
            ("amount_cents", self.amount.into()),
            ("paid_amount_cents", Value::Null),
            ("payment_method", Value::Null),
            ("paid_at", Value::Null),
            ("notes", teller.note()),
            ("dispatch_note", Value::Null),
            ("settlement_note", Value::Null),
            ("inserted_at", at.clone()),
            ("updated_at", at),
        ]);
        teller.tell(self.stream(), "OrderCreated", data);
    }

    fn details(&mut self, teller: &mut Teller<'_>, customer: &str) {
        self.amount = price(teller);
        let data = fields([
            ("order_uuid", self.id.as_str().into()),
            ("operator_uuid", teller.operator()),
            ("customer_uuid", customer.into()),
            ("amount_cents", self.amount.into()),
            ("notes", teller.note()),
            ("updated_at", teller.clock()),
        ]);
        teller.tell(self.stream(), "OrderDetailsUpdated", data);
    }

    fn status(&self, teller: &mut Teller<'_>, status: &str) {
        let at = teller.clock();
        let data = fields([
            ("order_uuid", self.id.as_str().into()),
            ("operator_uuid", teller.operator()),
            ("status", status.into()),
            (
                "completed_at",
                if status == "completed" {
                    at.clone()
                } else {
                    Value::Null
                },
            ),
            ("updated_at", at),
        ]);
        teller.tell(self.stream(), "OrderStatusChanged", data);
    }

    fn cancel(&self, teller: &mut Teller<'_>) {
        if teller.random.in_a_thousand(100) {
            self.status(teller, "cancelled"); // as the first version of the CRM did it, without a reason
            return;
        }
        let reason = *teller.random.pick(&words::REASONS);
        let data = fields([
            ("order_uuid", self.id.as_str().into()),
            ("operator_uuid", teller.operator()),
            ("cancellation_reason", reason.into()),
            ("updated_at", teller.clock()),
        ]);
        teller.tell(self.stream(), "OrderCancelled", data);
    }

    fn assignment(&self, teller: &mut Teller<'_>, window: (Timestamp, Timestamp)) {
        let data = fields([
            ("order_uuid", self.id.as_str().into()),
            ("operator_uuid", teller.operator()),
            ("scheduled_start_at", time(window.0)),
            ("scheduled_end_at", time(window.1)),
            ("dispatch_note", teller.note()),
            ("updated_at", teller.clock()),
        ]);
        teller.tell(self.stream(), "OrderAssignmentUpdated", data);
    }

    fn settle(&self, teller: &mut Teller<'_>, status: &str, note: &str) {
        let paid = status == "settled";
        let at = teller.clock();
        let method = *teller.random.pick(&words::PAYMENTS);
        let when_paid = |value: Value| if paid { value } else { Value::Null };
        let data = fields([
            ("order_uuid", self.id.as_str().into()),
            ("operator_uuid", teller.operator()),
            ("settlement_status", status.into()),
            (
                "settlement_note",
                if note.is_empty() {
                    Value::Null
                } else {
                    note.into()
                },
            ),
            ("paid_amount_cents", when_paid(self.amount.into())),
            ("payment_method", when_paid(method.into())),
            ("paid_at", when_paid(at.clone())),
            ("updated_at", at),
        ]);
        teller.tell(self.stream(), "OrderSettlementUpdated", data);
    }

    fn stream(&self) -> String {
        format!("order-{}", self.id)
    }
}

/// Between 99 and 699, in whole units of money.
fn price(teller: &mut Teller<'_>) -> u64 {
    9_900 + 100 * teller.random.below(601)
}
