//! The world in which the events happen: merchants with their people, and a calendar of what comes next.
//!
//! Lives of requests and orders overlap, so that the events of many streams mix as they do in a real store, while
//! those of one stream keep their order. Only what is under way is in memory: a million events are no problem.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use jiff::Timestamp;

use super::{event::Event, life, random::Random};

/// Monday, 3 March 2025, eight in the morning in UTC, in seconds.
const FIRST_DAY: i64 = 1_740_988_800;

/// One customer in this many events: a sample of 2,000 events has five merchants.
const EVENTS_PER_MERCHANT: usize = 400;
const MERCHANTS_MIN: usize = 3;
const MERCHANTS_MAX: usize = 200;

/// How many earlier orders are remembered, for uuids that turn up again at another merchant.
const REMEMBERED_ORDERS_MAX: usize = 50;

/// A tenant and its people.
#[derive(Clone, Debug)]
pub struct Merchant {
    /// Its identifier.
    pub id: String,
    /// Those who take calls.
    pub operators: Vec<String>,
    /// Those who clean.
    pub workers: Vec<String>,
    /// Those who pay.
    pub customers: Vec<String>,
    /// What can be booked.
    pub services: Vec<String>,
}

/// An endless stream of events.
pub struct World {
    random: Random,
    merchants: Vec<Merchant>,
    now: Timestamp,
    pending: BinaryHeap<Reverse<Pending>>,
    scheduled: u64,
    orders: VecDeque<String>,
}

/// An event that will happen; of two at the same time the one planned first comes first.
struct Pending {
    at: Timestamp,
    number: u64,
    event: Event,
}

impl World {
    /// A world for about this many events.
    pub fn new(seed: u64, events: usize) -> Self {
        let mut random = Random::new(seed);
        let merchants = (events / EVENTS_PER_MERCHANT).clamp(MERCHANTS_MIN, MERCHANTS_MAX);
        let merchants = (0..merchants).map(|_| Merchant::new(&mut random)).collect();
        let now = Timestamp::from_second(FIRST_DAY).unwrap_or(Timestamp::UNIX_EPOCH);
        Self {
            random,
            merchants,
            now,
            pending: BinaryHeap::new(),
            scheduled: 0,
            orders: VecDeque::new(),
        }
    }

    /// Another customer calls some time after the last one.
    fn one_more_call(&mut self) {
        self.now += self.random.minutes(10, 600);
        let merchant = self.random.pick_early(&self.merchants).clone();
        let known = self.orders.iter().cloned().collect::<Vec<_>>();
        let life = life::begin(&mut self.random, &merchant, self.now, &known);
        self.orders.extend(life.orders);
        while self.orders.len() > REMEMBERED_ORDERS_MAX {
            self.orders.pop_front();
        }
        for (at, event) in life.events {
            self.pending.push(Reverse(Pending {
                at,
                number: self.scheduled,
                event,
            }));
            self.scheduled += 1;
        }
    }
}

impl Iterator for World {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        // Whatever the next caller causes happens after the call.
        while self
            .pending
            .peek()
            .is_none_or(|Reverse(first)| first.at > self.now)
        {
            self.one_more_call();
        }
        self.pending.pop().map(|Reverse(pending)| pending.event)
    }
}

impl Merchant {
    fn new(random: &mut Random) -> Self {
        let mut people = |count: u64| (0..count).map(|_| random.uuid()).collect::<Vec<_>>();
        Self {
            operators: people(2),
            workers: people(6),
            customers: people(40),
            services: people(5),
            id: people(1).remove(0),
        }
    }
}

impl Pending {
    fn key(&self) -> (Timestamp, u64) {
        (self.at, self.number)
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Pending {}
