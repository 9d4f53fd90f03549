//! How producers differ in what they write: old and new names of fields, case of uuids, numbers, absent or null.
//!
//! All of these are legal, and a projection must give the same rows for each.

use serde_json::{Map, Number, Value};

use crate::sample::random::Random;

/// What one producer does to all events of one life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The current version of the CRM.
    Current,
    /// Before merchants had identifiers of their own: the name of a database schema, and `order_id`.
    Old,
}

impl Shape {
    /// One life in twenty is from the old days.
    pub fn of_a_life(random: &mut Random) -> Self {
        if random.in_a_thousand(50) {
            Self::Old
        } else {
            Self::Current
        }
    }

    /// For the metadata.
    pub fn producer(self) -> &'static str {
        match self {
            Self::Current => "crm",
            Self::Old => "crm-legacy",
        }
    }

    /// Adds the tenant and gives the fields the producer's habits.
    pub fn dress(
        self,
        random: &mut Random,
        merchant: &str,
        data: Map<String, Value>,
    ) -> Map<String, Value> {
        let shouting = random.in_a_thousand(20);
        let with_points = random.in_a_thousand(20);
        let without_nulls = random.in_a_thousand(500);
        let tenant = match self {
            Self::Current => ("merchant_id", merchant.to_owned()),
            Self::Old => (
                "tenant_schema",
                format!("merchant_{}", merchant.replace('-', "")),
            ),
        };
        let mut dressed = Map::new();
        dressed.insert(tenant.0.into(), Value::from(tenant.1));
        for (name, value) in data {
            if without_nulls && value.is_null() {
                continue;
            }
            let value = match value {
                Value::String(text) if shouting && is_uuid_field(&name) => {
                    Value::from(text.to_uppercase())
                }
                Value::Number(number) if with_points => with_point(&number),
                other => other,
            };
            dressed.insert(name, value);
        }
        if random.in_a_thousand(20) {
            dressed.insert(
                "trace_id".into(),
                Value::from(format!("{:016x}", random.number())),
            );
        }
        dressed
    }

    /// The name of the field that names the order in schedule events.
    pub fn order_in_schedule(self) -> &'static str {
        match self {
            Self::Current => "order_uuid",
            Self::Old => "order_id",
        }
    }
}

fn is_uuid_field(name: &str) -> bool {
    name.ends_with("_uuid") || name == "request_id" || name == "order_id"
}

/// `19900` as `19900.0`, as some languages write every number.
fn with_point(number: &Number) -> Value {
    serde_json::from_str(&format!("{number}.0")).unwrap_or_else(|_| Value::Number(number.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_shape_names_the_tenant_by_its_schema() {
        let merchant = "11111111-2222-4333-8444-555555555555";
        let dressed = Shape::Old.dress(&mut Random::new(1), merchant, Map::new());
        assert_eq!(
            dressed["tenant_schema"],
            "merchant_11111111222243338444555555555555"
        );
        assert!(!dressed.contains_key("merchant_id"));
    }

    #[test]
    fn a_number_with_a_point_keeps_its_value() {
        assert_eq!(with_point(&Number::from(19_900)).to_string(), "19900.0");
    }
}
