//! What the tests of the shipped projections share: events to build, chance that repeats, and the rules for
//! tenants, identifiers and times written once more over plain JSON.
//!
//! Must never call the code under test: what it says is what the projections are compared with.

use projector_sdk::Event;
use projector_sdk::testing::{Tables, event};
use serde_json::{Value, json};

/// A tenant.
pub const MERCHANT: &str = "0a1b2c3d-4e5f-6789-abcd-ef0123456789";
/// A tenant whose identifier differs in the last digit.
pub const OTHER_MERCHANT: &str = "0a1b2c3d-4e5f-6789-abcd-ef012345678a";

/// An event whose payload is `common`, with the fields of each of `more` put over it in turn.
#[must_use]
pub fn event_of(stream: &str, event_type: &str, common: Value, more: [Value; 2]) -> Event {
    let data = more.into_iter().fold(common, with);
    event(stream, event_type, &data.to_string())
}

/// An object with the fields of another one put over its own.
#[must_use]
pub fn with(mut object: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().into_iter().flatten() {
        object[name] = value.clone();
    }
    object
}

/// A small generator of numbers: the same ones on every run.
#[derive(Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// A number from 0 up to, and without, the bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    /// One of these.
    ///
    /// # Panics
    /// When there are none.
    pub fn one_of<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// One of the two tenants, as the field of either the new or the old shape.
    pub fn tenant(&mut self) -> Value {
        let merchant = self.one_of(&[MERCHANT, OTHER_MERCHANT]);
        match self.below(4) {
            0 => {
                let digits = merchant.replace('-', "").to_uppercase();
                json!({"merchant_id": null, "tenant_schema": format!("tenant_{digits}")})
            }
            1 => json!({"merchant_id": merchant.to_uppercase(), "tenant_schema": "whatever"}),
            _ => json!({"merchant_id": merchant}),
        }
    }
}

/// Who an event is about, in the canonical form.
#[must_use]
pub fn merchant(data: &Value) -> String {
    if data["merchant_id"].is_string() {
        return lower(&data["merchant_id"]);
    }
    let tenant = lower(&data["tenant_schema"]);
    let mut digits = tenant[tenant.len() - 32..].to_owned();
    for at in [20, 16, 12, 8] {
        digits.insert(at, '-');
    }
    digits
}

/// An identifier in the canonical form.
#[must_use]
pub fn lower(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_lowercase()
}

/// A time in the canonical form: cut to microseconds, and no fraction when it is zero.
#[must_use]
pub fn time(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default().trim_end_matches('Z');
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    match &format!("{fraction}000000")[..6] {
        "000000" => format!("{seconds}Z"),
        micros => format!("{seconds}.{micros}Z"),
    }
}

/// The rows of a table, as JSON, in the order of their keys.
///
/// # Panics
/// When a row is no JSON.
#[must_use]
pub fn rows(tables: &Tables, table: &str) -> Vec<Value> {
    let parse = |row: &String| serde_json::from_str(row).expect("a row is JSON");
    tables.json(table).iter().map(parse).collect()
}
