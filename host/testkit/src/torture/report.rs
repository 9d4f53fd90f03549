//! What a run was like.

use std::{fmt, time::Duration};

use super::{Scope, coverage::Coverage, fault};
use crate::{history::History, site::Databases};

/// A run that ended well.
#[derive(Debug)]
pub struct Report {
    pub(super) seed: u64,
    pub(super) databases: Databases,
    pub(super) scope: Scope,
    pub(super) took: Duration,
    pub(super) caught_up: Duration,
    pub(super) events: usize,
    pub(super) head: i64,
    pub(super) load: Vec<(&'static str, u64)>,
    pub(super) faults: Vec<u64>,
    pub(super) coverage: Coverage,
    pub(super) history: History,
}

impl Report {
    /// Times without a leader between a release in order and the next claim, shortest first.
    /// None where claims of several projections stand between each other.
    fn leaderless(&self) -> Vec<Duration> {
        if self.scope == Scope::Projection {
            return Vec::new();
        }
        let claims = &self.history.claims;
        let mut times: Vec<Duration> = claims
            .windows(2)
            .filter_map(|pair| {
                let micros = pair[1].at - pair[0].released_at?;
                // The next one may claim before the last one has written down that it left.
                Some(Duration::from_micros(micros.max(0).unsigned_abs()))
            })
            .collect();
        times.sort_unstable();
        times
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.databases {
            Databases::One => "one database",
            Databases::Two => "two servers",
        };
        let scope = match self.scope {
            Scope::Host => "one leader",
            Scope::Projection => "a leader for each projection",
        };
        writeln!(
            f,
            "seed {}, {place}, {scope}, {:.0} s; caught up {:.1} s after everything had healed",
            self.seed,
            self.took.as_secs_f64(),
            self.caught_up.as_secs_f64()
        )?;
        writeln!(f, "\nfaults")?;
        for ((name, _), count) in fault::ALL.iter().zip(&self.faults) {
            writeln!(f, "  {count:>6}  {name}")?;
        }
        writeln!(f, "\ntransactions of writers")?;
        for (what, count) in &self.load {
            writeln!(f, "  {count:>6}  {what}")?;
        }
        writeln!(f, "\nhistory")?;
        let holes = self.head - i64::try_from(self.events).unwrap_or(i64::MAX);
        let numbers = [
            (self.events, "events"),
            (holes.unsigned_abs() as usize, "positions without an event"),
            (self.history.applied.len(), "moves of checkpoints"),
            (self.history.claims.len(), "terms"),
        ];
        for (count, what) in numbers {
            writeln!(f, "  {count:>6}  {what}")?;
        }
        let times = self.leaderless();
        if let (Some(shortest), Some(longest)) = (times.first(), times.last()) {
            let ms = |time: &Duration| time.as_secs_f64() * 1_000.0;
            writeln!(
                f,
                "  {:>6}  hand-overs in order; without a leader for {:.0} ms, {:.0} ms in the middle, {:.0} ms at most",
                times.len(),
                ms(shortest),
                ms(&times[times.len() / 2]),
                ms(longest)
            )?;
        }
        writeln!(f, "\ncounters of all replicas")?;
        for (series, count) in self.coverage.told() {
            writeln!(f, "  {count:>6}  {series}")?;
        }
        write!(
            f,
            "\nright: (A) every event once, (B) in order, (C) under its term, (D) rows, (E) checkpoints, (F) versions, \
             (G) caught up, (H) nothing left, (I) coverage"
        )
    }
}
