//! The life of one customer's wish, from the call to the payment, with the detours that real stores hold.

mod order;
mod request;
mod schedule;
mod shape;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::{event::Event, random::Random, words, world::Merchant};
use shape::Shape;

/// What happened, and the orders that came of it.
pub struct Life {
    /// Events with the time of each; those of one stream in order.
    pub events: Vec<(Timestamp, Event)>,
    /// Identifiers of the orders.
    pub orders: Vec<String>,
}

/// Tells one life that begins now. `known` are earlier orders, perhaps another merchant's.
pub fn begin(random: &mut Random, merchant: &Merchant, now: Timestamp, known: &[String]) -> Life {
    let shape = Shape::of_a_life(random);
    let mut teller = Teller {
        random,
        merchant,
        known,
        shape,
        now,
        events: Vec::new(),
        orders: Vec::new(),
    };
    // Most customers ask first; some order at the counter.
    if teller.random.in_a_thousand(850) {
        request::tell(&mut teller);
    } else {
        let customer = teller.customer();
        order::tell(&mut teller, None, &customer);
    }
    Life {
        events: teller.events,
        orders: teller.orders,
    }
}

/// Tells events one after the other while time goes by.
struct Teller<'a> {
    random: &'a mut Random,
    merchant: &'a Merchant,
    known: &'a [String],
    shape: Shape,
    now: Timestamp,
    events: Vec<(Timestamp, Event)>,
    orders: Vec<String>,
}

impl Teller<'_> {
    /// Some minutes go by.
    fn wait(&mut self, low: u64, high: u64) {
        self.now += self.random.minutes(low, high);
    }

    /// Time goes on to a moment, unless that is past.
    fn wait_for(&mut self, moment: Timestamp) {
        self.now = self.now.max(moment);
    }

    /// One event happens now.
    fn tell(&mut self, stream: String, name: &'static str, data: Map<String, Value>) {
        let data = self.shape.dress(self.random, &self.merchant.id, data);
        let (source, id) = (self.shape.producer(), self.random.uuid());
        self.events.push((
            self.now,
            Event {
                stream,
                name,
                data,
                source,
                id,
            },
        ));
        // Two events of one life never fall on the same instant.
        self.now += SignedDuration::from_micros(1);
    }

    /// The time as the producer's clock has it, with as many fraction digits as the producer likes.
    fn clock(&mut self) -> Value {
        let late = self.random.in_a_thousand(20);
        let shown = if late {
            self.now - SignedDuration::from_mins(90)
        } else {
            self.now
        };
        super::event::time(match self.random.below(20) {
            0..=8 => whole(shown, 1_000_000_000),
            9..=14 => whole(shown, 1_000_000),
            15..=18 => shown,
            _ => shown + SignedDuration::from_nanos(self.random.between(1, 999) as i64),
        })
    }

    /// Somebody's remark, if any.
    fn note(&mut self) -> Value {
        if self.random.in_a_thousand(300) {
            Value::from(*self.random.pick(&words::NOTES))
        } else {
            Value::Null
        }
    }

    fn operator(&mut self) -> Value {
        // Some changes come from a job and have no operator.
        if self.random.in_a_thousand(900) {
            Value::from(self.random.pick(&self.merchant.operators).as_str())
        } else {
            Value::Null
        }
    }

    fn customer(&mut self) -> String {
        self.random.pick_early(&self.merchant.customers).clone()
    }

    /// A window that begins at a full hour some days ahead.
    fn window(&mut self) -> (Timestamp, Timestamp) {
        let ahead = self.now + SignedDuration::from_hours(self.random.between(20, 140) as i64);
        let start = whole(ahead, 3_600_000_000_000);
        (
            start,
            start + SignedDuration::from_hours(self.random.between(2, 5) as i64),
        )
    }
}

/// Cut down to a multiple of so many nanoseconds.
fn whole(at: Timestamp, nanoseconds: i128) -> Timestamp {
    let cut = at.as_nanosecond() - at.as_nanosecond().rem_euclid(nanoseconds);
    Timestamp::from_nanosecond(cut).unwrap_or(at)
}
