//! One worker for one order in one time window.

use jiff::Timestamp;
use serde_json::Value;

use super::Teller;
use crate::sample::event::{fields, time};

/// A schedule under way.
pub struct Schedule {
    id: String,
    order: String,
    worker: String,
}

impl Schedule {
    /// A worker is assigned.
    pub fn create(teller: &mut Teller<'_>, order: &str, window: (Timestamp, Timestamp)) -> Self {
        let worker = teller.random.pick(&teller.merchant.workers).clone();
        let schedule = Self {
            id: teller.random.uuid(),
            order: order.into(),
            worker,
        };
        schedule.created(teller, window);
        schedule
    }

    /// Somebody else will do it.
    pub fn reassign(&mut self, teller: &mut Teller<'_>, window: (Timestamp, Timestamp)) {
        self.worker = teller.random.pick(&teller.merchant.workers).clone();
        let data = fields([
            (teller.shape.order_in_schedule(), self.order.as_str().into()),
            ("assigned_user_uuid", self.worker.as_str().into()),
            ("start_at", time(window.0)),
            ("end_at", time(window.1)),
            ("notes", teller.note()),
            ("updated_at", teller.clock()),
        ]);
        teller.tell(self.stream(), "ScheduleAssignmentUpdated", data);
    }

    /// Deleted by mistake, and made anew at once.
    pub fn delete_and_create(&mut self, teller: &mut Teller<'_>, window: (Timestamp, Timestamp)) {
        self.delete(teller);
        self.id = teller.random.uuid();
        self.created(teller, window);
    }

    /// Its status changes.
    pub fn status(&self, teller: &mut Teller<'_>, status: &str) {
        let data = fields([
            (teller.shape.order_in_schedule(), self.order.as_str().into()),
            ("status", status.into()),
            ("updated_at", teller.clock()),
        ]);
        teller.tell(self.stream(), "ScheduleStatusChanged", data);
    }

    /// It is taken out of the calendar.
    pub fn delete(&self, teller: &mut Teller<'_>) {
        let data = fields([
            (teller.shape.order_in_schedule(), self.order.as_str().into()),
            ("deleted_at", teller.clock()),
        ]);
        teller.tell(self.stream(), "ScheduleDeleted", data);
    }

    fn created(&self, teller: &mut Teller<'_>, window: (Timestamp, Timestamp)) {
        let at = teller.clock();
        let data = fields([
            (teller.shape.order_in_schedule(), self.order.as_str().into()),
            ("schedule_uuid", self.id.as_str().into()),
            ("assigned_user_uuid", self.worker.as_str().into()),
            ("start_at", time(window.0)),
            ("end_at", time(window.1)),
            ("status", "planned".into()),
            ("notes", Value::Null),
            ("inserted_at", at.clone()),
            ("updated_at", at),
        ]);
        teller.tell(self.stream(), "ScheduleAssignmentCreated", data);
    }

    fn stream(&self) -> String {
        format!("schedule-{}", self.order)
    }
}
