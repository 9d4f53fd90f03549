//! The metrics of a replica, in the order of the data flow.
//!
//! Names follow one rule: `projector_<noun>_<unit>`, `_total` for counters (added by the exposition format).
//! Labels come from closed sets: projection names, stages, classes, categories, states.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::error::Class;
use crate::event_store::event::Position;
use crate::projection::progress::State;
use crate::projection::verdict::{Stand, Verdict, lag};

/// Part of a batch's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// In the guest, with checks and fold.
    Guest,
    /// Its transaction.
    Commit,
}

impl EncodeLabelValue for Stage {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> Result<(), std::fmt::Error> {
        let word = match self {
            Self::Guest => "guest",
            Self::Commit => "commit",
        };
        EncodeLabelValue::encode(&word, encoder)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByProjection {
    projection: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStage {
    projection: String,
    stage: Stage,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByClass {
    projection: String,
    class: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCategory {
    projection: String,
    category: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByLoad {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByState {
    projection: String,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    projection: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCause {
    cause: &'static str,
}

/// What the reading of the event store counts. The default counts for nobody.
#[derive(Debug, Clone, Default)]
pub struct StoreMetrics {
    /// Gaps that were waited for.
    pub gap_waits: Counter,
    /// Listening sessions that replaced a lost one.
    pub reconnects: Counter,
}

/// What the election counts. The default counts for nobody.
#[derive(Debug, Clone, Default)]
pub struct LeaderMetrics {
    ended: Family<ByCause, Counter>,
    /// Listening sessions that replaced a lost one.
    pub reconnects: Counter,
}

impl LeaderMetrics {
    /// A leadership ended, for this reason.
    pub fn ended(&self, cause: &'static str) {
        self.ended.get_or_create(&ByCause { cause }).inc();
    }
}

type Durations = Family<ByStage, Histogram, fn() -> Histogram>;
type Sizes = Family<ByProjection, Histogram, fn() -> Histogram>;

/// Every metric of the process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    head: Gauge,
    high_water: Gauge,
    listening: Gauge,
    of_store: StoreMetrics,
    leader: Gauge,
    projection_leader: Family<ByProjection, Gauge>,
    leader_changes: Counter,
    of_leader: LeaderMetrics,
    denied_overdue: Gauge,
    positions: Family<ByProjection, Gauge>,
    lag_events: Family<ByProjection, Gauge>,
    caught_up: Family<ByProjection, Gauge>,
    states: Family<ByState, Gauge>,
    events: Family<ByProjection, Counter>,
    batches: Family<ByProjection, Counter>,
    fenced: Family<ByProjection, Counter>,
    batch_events: Sizes,
    durations: Durations,
    retries: Family<ByClass, Counter>,
    failures: Family<ByCategory, Counter>,
    dead_letters: Family<ByProjection, Gauge>,
    dead_letter_oldest: Family<ByProjection, Gauge>,
    parked_streams: Family<ByProjection, Gauge>,
    calls: Family<ByOutcome, Counter>,
    fuel: Family<ByProjection, Counter>,
    memory: Family<ByProjection, Gauge>,
    module_loads: Family<ByLoad, Counter>,
    reload_failures: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Registers everything.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("projector");
        registry.register(
            "build",
            "Version of this program",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        let reconnects = counter(
            &mut registry,
            "listener_reconnects",
            "How often a listening session was replaced after it was lost",
        );
        let inner = Inner {
            head: gauge(
                &mut registry,
                "head_position",
                "Highest visible position of the event store",
            ),
            high_water: gauge(
                &mut registry,
                "high_water_position",
                "No event can appear at or below this position any more",
            ),
            listening: gauge(
                &mut registry,
                "listening",
                "1 while notifications are received, 0 while polling only",
            ),
            of_store: StoreMetrics {
                gap_waits: counter(
                    &mut registry,
                    "gap_waits",
                    "Gaps in the positions that a running transaction could still fill, and that were waited for",
                ),
                reconnects: reconnects.clone(),
            },
            leader: gauge(&mut registry, "leader", "1 while this replica leads"),
            projection_leader: family(
                &mut registry,
                "projection_leader",
                "1 while this replica leads a projection",
            ),
            leader_changes: counter(
                &mut registry,
                "leader_changes",
                "How often this replica began to lead",
            ),
            of_leader: LeaderMetrics {
                ended: family(
                    &mut registry,
                    "leaderships_ended",
                    "How often this replica stopped leading, by cause",
                ),
                reconnects,
            },
            denied_overdue: gauge(
                &mut registry,
                "leader_denied_overdue",
                "1 when this replica has been a standby for longer than [leader] denied_limit",
            ),
            positions: family(
                &mut registry,
                "checkpoint_position",
                "Position up to which a projection's events are in its tables",
            ),
            lag_events: family(
                &mut registry,
                "lag_events",
                "Positions between a projection's checkpoint and the head",
            ),
            caught_up: family(
                &mut registry,
                "caught_up",
                "1 while a projection is done with everything up to the head, 0 also when it stands still there",
            ),
            states: family(
                &mut registry,
                "status",
                "1 for the present state of a projection",
            ),
            events: family(&mut registry, "events", "Events applied"),
            batches: family(&mut registry, "batches", "Batches committed"),
            fenced: family(
                &mut registry,
                "fenced_batches",
                "Batches that matched no checkpoint, since a newer term was claimed",
            ),
            batch_events: Family::new_with_constructor(sizes as fn() -> Histogram),
            durations: Family::new_with_constructor(seconds as fn() -> Histogram),
            retries: family(
                &mut registry,
                "retries",
                "Runs that failed for the moment, by class",
            ),
            failures: family(
                &mut registry,
                "failures",
                "Batches or events that did not pass, by category",
            ),
            dead_letters: family(
                &mut registry,
                "dead_letters",
                "Dead letters that nobody has resolved",
            ),
            dead_letter_oldest: family(
                &mut registry,
                "dead_letter_oldest_seconds",
                "Age of the oldest dead letter that nobody has resolved, 0 when there is none",
            ),
            parked_streams: family(
                &mut registry,
                "parked_streams",
                "Streams whose events wait behind one that did not pass",
            ),
            calls: family(
                &mut registry,
                "guest_calls",
                "Batches, or parts of them, that were handed to a plugin, by outcome",
            ),
            fuel: family(
                &mut registry,
                "guest_fuel",
                "Instructions used by a plugin, roughly",
            ),
            memory: family(
                &mut registry,
                "guest_memory_bytes_max",
                "Most memory that one call of a plugin has used",
            ),
            module_loads: family(
                &mut registry,
                "module_loads",
                "Plugin files that were read because they are new or changed, by what came of it: loaded or refused",
            ),
            reload_failures: {
                let counter = Counter::default();
                registry.register(
                    "config_reload_failures",
                    "Changed configurations that were refused; the old one stayed",
                    counter.clone(),
                );
                counter
            },
            registry: Registry::default(),
        };
        registry.register(
            "batch_events",
            "Events read for one batch",
            inner.batch_events.clone(),
        );
        registry.register(
            "batch_duration_seconds",
            "Time of one batch in a stage",
            inner.durations.clone(),
        );
        Self(Arc::new(Inner { registry, ..inner }))
    }

    /// The text that `/metrics` answers.
    ///
    /// # Errors
    /// When a label cannot be written.
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.0.registry)?;
        Ok(page)
    }

    /// What is known of the store.
    pub fn store(&self, head: Position, high_water: Position, listening: bool) {
        self.0.head.set(head.0);
        self.0.high_water.set(high_water.0);
        self.0.listening.set(i64::from(listening));
    }

    /// For the reading of the event store.
    #[must_use]
    pub fn of_store(&self) -> StoreMetrics {
        self.0.of_store.clone()
    }

    /// For the election.
    #[must_use]
    pub fn of_leader(&self) -> LeaderMetrics {
        self.0.of_leader.clone()
    }

    /// Whether this replica leads.
    pub fn leads(&self, leads: bool) {
        if self.0.leader.set(i64::from(leads)) == 0 && leads {
            self.0.leader_changes.inc();
        }
    }

    /// A plugin file was loaded, or refused.
    pub fn module_loaded(&self, good: bool) {
        let outcome = if good { "loaded" } else { "refused" };
        self.0.module_loads.get_or_create(&ByLoad { outcome }).inc();
    }

    /// A changed configuration was refused.
    pub fn reload_failed(&self) {
        self.0.reload_failures.inc();
    }

    /// Whether this replica leads a projection.
    pub fn leads_projection(&self, name: &str, leads: bool) {
        let by = ByProjection {
            projection: name.to_owned(),
        };
        self.0
            .projection_leader
            .get_or_create(&by)
            .set(i64::from(leads));
    }

    /// Whether this replica has been a standby for longer than its limit.
    pub fn denied(&self, overdue: bool) {
        self.0.denied_overdue.set(i64::from(overdue));
    }

    /// The series of one projection.
    #[must_use]
    pub fn projection(&self, name: &str) -> ProjectionMetrics {
        let by = ByProjection {
            projection: name.to_owned(),
        };
        ProjectionMetrics {
            name: name.to_owned(),
            all: self.clone(),
            events: self.0.events.get_or_create(&by).clone(),
            batches: self.0.batches.get_or_create(&by).clone(),
            fuel: self.0.fuel.get_or_create(&by).clone(),
            memory: self.0.memory.get_or_create(&by).clone(),
            memory_max: Arc::new(AtomicU64::new(0)),
        }
    }
}

/// The series of one projection. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ProjectionMetrics {
    name: String,
    all: Metrics,
    events: Counter,
    batches: Counter,
    fuel: Counter,
    memory: Gauge,
    memory_max: Arc<AtomicU64>,
}

impl ProjectionMetrics {
    /// A batch was read.
    pub fn batch_read(&self, events: usize) {
        self.all
            .0
            .batch_events
            .get_or_create(&self.by())
            .observe(to_f64(events));
    }

    /// A batch came out of the guest.
    pub fn projected(&self, fuel: u64, memory_peak: u64) {
        self.fuel.inc_by(fuel);
        let before = self.memory_max.fetch_max(memory_peak, Ordering::Relaxed);
        self.memory
            .set(i64::try_from(before.max(memory_peak)).unwrap_or(i64::MAX));
    }

    /// A batch took this long in a stage.
    pub fn took(&self, stage: Stage, seconds: f64) {
        self.all
            .0
            .durations
            .get_or_create(&ByStage {
                projection: self.name.clone(),
                stage,
            })
            .observe(seconds);
    }

    /// A batch was committed.
    pub fn committed(&self, events: usize, position: Position) {
        self.events.inc_by(events as u64);
        self.batches.inc();
        self.all
            .0
            .positions
            .get_or_create(&self.by())
            .set(position.0);
    }

    /// A batch matched no checkpoint, since a newer term was claimed.
    pub fn fenced(&self) {
        self.all.0.fenced.get_or_create(&self.by()).inc();
    }

    /// A run failed for the moment.
    pub fn retried(&self, class: Class) {
        self.all
            .0
            .retries
            .get_or_create(&ByClass {
                projection: self.name.clone(),
                class: class.as_str(),
            })
            .inc();
    }

    /// A batch or an event did not pass.
    pub fn failed(&self, category: &str) {
        let by = ByCategory {
            projection: self.name.clone(),
            category: category.to_owned(),
        };
        self.all.0.failures.get_or_create(&by).inc();
    }

    /// A plugin was called; the outcome is `ok` or a category.
    pub fn called(&self, outcome: &'static str) {
        let by = ByOutcome {
            projection: self.name.clone(),
            outcome,
        };
        self.all.0.calls.get_or_create(&by).inc();
    }

    /// What waits for a person: letters, the age of the oldest in seconds, streams.
    pub fn waits(&self, letters: i64, oldest_seconds: i64, streams: i64) {
        let (by, all) = (self.by(), &self.all.0);
        all.dead_letters.get_or_create(&by).set(letters);
        all.dead_letter_oldest
            .get_or_create(&by)
            .set(oldest_seconds);
        all.parked_streams.get_or_create(&by).set(streams);
    }

    /// The present state, how far behind, and whether that is caught up.
    pub fn state(&self, stand: &Stand, head: Position) {
        let (by, all) = (self.by(), &self.all.0);
        for state in State::ALL {
            let by = ByState {
                projection: self.name.clone(),
                state: state.as_str(),
            };
            let present = stand.state == Some(state);
            all.states.get_or_create(&by).set(i64::from(present));
        }
        let done = stand.verdict(head) == Verdict::Done;
        all.caught_up.get_or_create(&by).set(i64::from(done));
        let behind = lag(stand.position, head);
        all.lag_events.get_or_create(&by).set(behind);
    }

    fn by(&self) -> ByProjection {
        ByProjection {
            projection: self.name.clone(),
        }
    }
}

fn gauge(registry: &mut Registry, name: &str, help: &str) -> Gauge {
    let gauge = Gauge::default();
    registry.register(name, help, gauge.clone());
    gauge
}

fn counter(registry: &mut Registry, name: &str, help: &str) -> Counter {
    let counter = Counter::default();
    registry.register(name, help, counter.clone());
    counter
}

fn family<L, M>(registry: &mut Registry, name: &str, help: &str) -> Family<L, M>
where
    L: Clone + std::hash::Hash + Eq + EncodeLabelSet + std::fmt::Debug + Send + Sync + 'static,
    M: Default
        + prometheus_client::encoding::EncodeMetric
        + prometheus_client::metrics::TypedMetric
        + std::fmt::Debug
        + Send
        + Sync
        + 'static,
    Family<L, M>: prometheus_client::encoding::EncodeMetric,
{
    let family = Family::default();
    registry.register(name, help, family.clone());
    family
}

fn sizes() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 4.0, 9))
}

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_5, 2.5, 13))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a batch has far fewer events than 2^52"
)]
fn to_f64(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
