//! Odd but legal events, the same for the same seed: everything that the domain's description allows and producers
//! really do. Any order of them is legal too, so that several writers can append them at once.

use serde_json::{Map, Number, Value, json};

use crate::random::Random;

/// An event that is not stored yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Its stream.
    pub stream: String,
    /// What happened.
    pub kind: String,
    /// Its payload.
    pub data: Value,
}

/// A stream of drafts.
#[derive(Debug)]
pub struct Generator {
    random: Random,
    merchants: Vec<String>,
    /// Few, and the same under every merchant, so that they meet.
    orders: Vec<String>,
    requests: Vec<String>,
    people: Vec<String>,
}

const ORDER_STATUS: [&str; 6] = [
    "pending",
    "confirmed",
    "dispatching",
    "in_service",
    "completed",
    "cancelled",
];
const SCHEDULE_STATUS: [&str; 4] = ["planned", "in_service", "done", "cancelled"];
const REQUEST_STATUS: [&str; 4] = ["new", "confirmed", "converted", "cancelled"];

/// Orders of a merchant whose amounts reach the limits: one from zero up, one from zero down, so that every sum fits.
const RICH: [&str; 2] = [
    "aaaaaaaa-0000-4000-8000-000000000001",
    "aaaaaaaa-0000-4000-8000-000000000002",
];

const TEXTS: [&str; 12] = [
    "",
    "two keys",
    "O'Brien; drop table orders; --",
    "say \"hello\"",
    "C:\\temp\\new \\u0041",
    "🧹🪣 emoji, 清洁 and ünïcode",
    "line one\nline two\ttab\r",
    "null",
    "{\"json\": [1, 2]}",
    "{1,2,NULL}",
    "\u{1}\u{1f}\u{7f}\u{2028}\u{feff}",
    "$1 %s ${x} \\x00 $$",
];

impl Generator {
    /// The drafts of this seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut many =
            |count: usize| -> Vec<String> { (0..count).map(|_| random.uuid()).collect() };
        let (merchants, orders, requests, people) = (many(4), many(30), many(12), many(6));
        Self {
            random,
            merchants,
            orders,
            requests,
            people,
        }
    }

    /// A line for `projector-host append`.
    pub fn line(&mut self) -> String {
        let draft = self.draft();
        let mut line = json!({ "stream": draft.stream, "type": draft.kind, "data": draft.data });
        if self.random.percent(10) {
            line["metadata"] = json!({ "by": "generator" });
        }
        line.to_string()
    }

    /// This many lines.
    pub fn lines(&mut self, count: usize) -> String {
        (0..count).map(|_| self.line() + "\n").collect()
    }

    /// The next draft.
    pub fn draft(&mut self) -> Draft {
        match self.random.below(100) {
            0..=54 => self.order(),
            55..=76 => self.schedule(),
            77..=94 => self.request(),
            95..=97 => self.rich(),
            _ => self.unknown(),
        }
    }

    fn order(&mut self) -> Draft {
        let order = self.random.pick(&self.orders).clone();
        let amount = match self.random.below(8) {
            0 => 0,
            1 => -500,
            2 => 9_007_199_254_740_993, // beyond what a double holds
            _ => self.random.below(1_000_000) as i64,
        };
        self.order_event(order, None, amount)
    }

    /// Amounts at the limits of 64 bits.
    fn rich(&mut self) -> Draft {
        let (order, amount) = match self.random.below(4) {
            0 => (RICH[0], i64::MAX),
            1 => (RICH[0], 0),
            2 => (RICH[1], i64::MIN),
            _ => (RICH[1], 0),
        };
        self.order_event(
            order.into(),
            Some("ffffffff-ffff-4fff-bfff-ffffffffffff"),
            amount,
        )
    }

    fn order_event(&mut self, order: String, merchant: Option<&str>, amount: i64) -> Draft {
        let mut data = Map::new();
        data.insert("order_uuid".into(), order.as_str().into());
        data.insert("operator_uuid".into(), self.person_or_null());
        data.insert("updated_at".into(), self.time());
        let kind = match self.random.below(10) {
            0..=2 => {
                data.insert("request_id".into(), self.request_or_null());
                data.insert("inserted_at".into(), self.time());
                data.insert("cancellation_reason".into(), self.text_or_null());
                self.order_details(&mut data, amount);
                self.order_status(&mut data);
                self.order_assignment(&mut data);
                self.order_settlement(&mut data);
                "OrderCreated"
            }
            3 => {
                self.order_details(&mut data, amount);
                "OrderDetailsUpdated"
            }
            4..=6 => {
                self.order_status(&mut data);
                "OrderStatusChanged"
            }
            7 => {
                data.insert("cancellation_reason".into(), self.text());
                "OrderCancelled"
            }
            8 => {
                self.order_assignment(&mut data);
                "OrderAssignmentUpdated"
            }
            _ => {
                self.order_settlement(&mut data);
                "OrderSettlementUpdated"
            }
        };
        let data = self.dress(data, merchant);
        Draft {
            stream: format!("order-{order}"),
            kind: kind.into(),
            data,
        }
    }

    fn order_details(&mut self, data: &mut Map<String, Value>, amount: i64) {
        data.insert("customer_uuid".into(), self.person_or_null());
        data.insert("amount_cents".into(), amount.into());
        data.insert("notes".into(), self.text_or_null());
    }

    fn order_status(&mut self, data: &mut Map<String, Value>) {
        data.insert("status".into(), (*self.random.pick(&ORDER_STATUS)).into());
        data.insert("completed_at".into(), self.time_or_null());
    }

    fn order_assignment(&mut self, data: &mut Map<String, Value>) {
        data.insert("scheduled_start_at".into(), self.time_or_null());
        data.insert("scheduled_end_at".into(), self.time_or_null());
        data.insert("dispatch_note".into(), self.text_or_null());
    }

    fn order_settlement(&mut self, data: &mut Map<String, Value>) {
        let paid = *self.random.pick(&[0, 1, 19_900, i64::MAX, i64::MIN]);
        let paid = if self.random.percent(30) {
            Value::Null
        } else {
            paid.into()
        };
        data.insert(
            "settlement_status".into(),
            (*self.random.pick(&["unsettled", "settled"])).into(),
        );
        data.insert("settlement_note".into(), self.text_or_null());
        data.insert("paid_amount_cents".into(), paid);
        data.insert("payment_method".into(), self.text_or_null());
        data.insert("paid_at".into(), self.time_or_null());
    }

    fn schedule(&mut self) -> Draft {
        let order = self.random.pick(&self.orders).clone();
        let name = if self.random.percent(20) {
            "order_id"
        } else {
            "order_uuid"
        };
        let mut data = Map::new();
        data.insert(name.into(), order.as_str().into());
        data.insert("updated_at".into(), self.time());
        let kind = match self.random.below(8) {
            0..=2 => {
                data.insert("schedule_uuid".into(), self.random.uuid().into());
                data.insert(
                    "status".into(),
                    (*self.random.pick(&SCHEDULE_STATUS)).into(),
                );
                data.insert("inserted_at".into(), self.time());
                self.schedule_assignment(&mut data);
                "ScheduleAssignmentCreated"
            }
            3 => {
                self.schedule_assignment(&mut data);
                "ScheduleAssignmentUpdated"
            }
            4..=5 => {
                data.insert(
                    "status".into(),
                    (*self.random.pick(&SCHEDULE_STATUS)).into(),
                );
                "ScheduleStatusChanged"
            }
            _ => {
                data.insert("deleted_at".into(), self.time());
                "ScheduleDeleted"
            }
        };
        let data = self.dress(data, None);
        Draft {
            stream: format!("schedule-{order}"),
            kind: kind.into(),
            data,
        }
    }

    fn schedule_assignment(&mut self, data: &mut Map<String, Value>) {
        data.insert(
            "assigned_user_uuid".into(),
            self.random.pick(&self.people).as_str().into(),
        );
        data.insert("start_at".into(), self.time());
        data.insert("end_at".into(), self.time());
        data.insert("notes".into(), self.text_or_null());
    }

    fn request(&mut self) -> Draft {
        let request = self.random.pick(&self.requests).clone();
        let mut data = Map::new();
        data.insert("request_uuid".into(), request.as_str().into());
        data.insert("updated_at".into(), self.time());
        let kind = match self.random.below(6) {
            0..=1 => {
                data.insert(
                    "customer_uuid".into(),
                    self.random.pick(&self.people).as_str().into(),
                );
                data.insert(
                    "creator_uuid".into(),
                    self.random.pick(&self.people).as_str().into(),
                );
                data.insert("status".into(), (*self.random.pick(&REQUEST_STATUS)).into());
                data.insert("source".into(), self.text());
                data.insert("inserted_at".into(), self.time());
                self.request_details(&mut data);
                "ServiceRequestCreated"
            }
            2..=3 => {
                self.request_details(&mut data);
                "ServiceRequestDetailsUpdated"
            }
            _ => {
                data.insert("status".into(), (*self.random.pick(&REQUEST_STATUS)).into());
                "ServiceRequestStatusChanged"
            }
        };
        let data = self.dress(data, None);
        Draft {
            stream: format!("service_request-{request}"),
            kind: kind.into(),
            data,
        }
    }

    fn request_details(&mut self, data: &mut Map<String, Value>) {
        data.insert("service_catalog_uuid".into(), self.person_or_null());
        data.insert("service_content".into(), self.text());
        data.insert("appointment_start_at".into(), self.time_or_null());
        data.insert("appointment_end_at".into(), self.time_or_null());
        data.insert("notes".into(), self.text_or_null());
    }

    /// What no projection knows, whatever its payload.
    fn unknown(&mut self) -> Draft {
        let kind = *self.random.pick(&[
            "OrderArchived",
            "ordercreated",
            "Order",
            "🧹",
            "ServiceRequestcreated",
        ]);
        let data = self
            .random
            .pick(&[
                json!({}),
                json!(null),
                json!([1, "two"]),
                json!({"status": "unheard of"}),
            ])
            .clone();
        Draft {
            stream: format!("misc-{}", self.random.below(5)),
            kind: kind.into(),
            data,
        }
    }

    /// The tenant, and a producer's habits.
    fn dress(&mut self, data: Map<String, Value>, merchant: Option<&str>) -> Value {
        let merchant =
            merchant.map_or_else(|| self.random.pick(&self.merchants).clone(), str::to_owned);
        let simple = merchant.replace('-', "");
        let tenant = match self.random.below(10) {
            0 => json!({ "tenant_schema": format!("merchant_{simple}") }),
            1 => {
                json!({ "tenant_schema": format!("a_b_{}", simple.to_uppercase()), "merchant_id": null })
            }
            2 => json!({ "tenant_schema": "merchant_1234", "merchant_id": merchant }),
            3 => json!({ "merchant_id": merchant.to_uppercase() }),
            _ => json!({ "merchant_id": merchant }),
        };
        let (shouting, without_nulls) = (self.random.percent(15), self.random.percent(50));
        let spelling = self.random.below(6);
        let mut dressed = Map::new();
        for (name, value) in data {
            let is_id = name.ends_with("_uuid") || name.ends_with("_id");
            match value {
                Value::Null if without_nulls => continue,
                Value::String(text) if is_id && shouting => {
                    dressed.insert(name, text.to_uppercase().into())
                }
                Value::Number(number) => dressed.insert(name, spell(&number, spelling)),
                other => dressed.insert(name, other),
            };
        }
        if self.random.percent(10) {
            dressed.insert("trace".into(), json!({ "deep": [null, 1.5, "x"] }));
            dressed.insert("last_position".into(), (-1).into());
        }
        dressed.extend(tenant.as_object().cloned().unwrap_or_default());
        Value::Object(dressed)
    }

    /// In no order at all, with any usual number of digits; now and then from long ago.
    fn time(&mut self) -> Value {
        let year = *self.random.pick(&[1969, 1999, 2024, 2025, 2026, 2026]);
        let (month, day) = (1 + self.random.below(12), 1 + self.random.below(28));
        let (hour, minute, second) = (
            self.random.below(24),
            self.random.below(60),
            self.random.below(60),
        );
        let nanos = *self.random.pick(&[
            0,
            999_999_999,
            120_000_000,
            self.random.clone().below(1_000_000_000),
        ]);
        let fraction = match self.random.below(4) {
            0 => String::new(),
            1 => format!(".{:03}", nanos / 1_000_000),
            2 => format!(".{:06}", nanos / 1_000),
            _ => format!(".{nanos:09}"),
        };
        format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z").into()
    }

    fn time_or_null(&mut self) -> Value {
        if self.random.percent(40) {
            Value::Null
        } else {
            self.time()
        }
    }

    fn text(&mut self) -> Value {
        match self.random.below(60) {
            0 => "清🧹\"\\".repeat(2_000).into(),
            _ => (*self.random.pick(&TEXTS)).into(),
        }
    }

    fn text_or_null(&mut self) -> Value {
        if self.random.percent(40) {
            Value::Null
        } else {
            self.text()
        }
    }

    fn person_or_null(&mut self) -> Value {
        if self.random.percent(40) {
            Value::Null
        } else {
            self.random.pick(&self.people).as_str().into()
        }
    }

    fn request_or_null(&mut self) -> Value {
        if self.random.percent(40) {
            Value::Null
        } else {
            self.random.pick(&self.requests).as_str().into()
        }
    }
}

/// `19900` also as `19900.0` or `199.00e2`, as some languages write every number.
fn spell(number: &Number, spelling: u64) -> Value {
    let text = match spelling {
        0 => format!("{number}.0"),
        1 => format!("{number}00e-2"),
        _ => return Value::Number(number.clone()),
    };
    serde_json::from_str(&text).unwrap_or_else(|_| Value::Number(number.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Event, PROJECTIONS, fold};

    #[test]
    fn every_draft_is_legal_and_a_seed_gives_the_same_ones() {
        let drafts: Vec<Draft> = {
            let mut generator = Generator::new(1);
            (0..5_000).map(|_| generator.draft()).collect()
        };
        let mut again = Generator::new(1);
        assert!(drafts.iter().all(|draft| *draft == again.draft()));
        let events: Vec<Event> = (1..)
            .zip(drafts)
            .map(|(position, draft)| Event {
                position,
                kind: draft.kind,
                data: without_exponents(draft.data),
            })
            .collect();
        for name in PROJECTIONS {
            let tables = fold(name, &events, i64::MAX).expect("every draft is legal");
            assert!(
                tables.iter().all(|table| table.rows.len() > 10),
                "{name} stays empty"
            );
        }
    }

    /// The store's `jsonb` writes numbers out.
    fn without_exponents(data: Value) -> Value {
        match data {
            Value::Object(fields) => Value::Object(
                fields
                    .into_iter()
                    .map(|(name, value)| (name, without_exponents(value)))
                    .collect(),
            ),
            Value::Number(number) => {
                let text = number.to_string();
                let short = text
                    .strip_suffix("00e-2")
                    .or(text.strip_suffix("00E-2"))
                    .unwrap_or(&text);
                serde_json::from_str(short).expect("it is a number")
            }
            other => other,
        }
    }
}
