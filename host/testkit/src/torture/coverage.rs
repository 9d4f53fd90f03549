//! Which states the replicas went through, by their own counters, over all their lives.

use std::collections::BTreeMap;

use super::world::Slot;

/// A state that a run must have seen, and the fault that leads to it.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// In words.
    pub what: &'static str,
    /// The start of its line in `/metrics`.
    series: &'static str,
    /// The fault.
    pub aim: &'static str,
}

/// All of them.
pub const GOALS: [Goal; 4] = [
    Goal {
        what: "a fenced batch",
        series: "projector_fenced_batches_total",
        aim: "a claim arrives late",
    },
    Goal {
        what: "a lease that ran out",
        series: "projector_leaderships_ended_total{cause=\"lease-ran-out\"}",
        aim: "the leader is frozen beyond its lease",
    },
    Goal {
        what: "a wait for a gap",
        series: "projector_gap_waits_total",
        aim: "a writer takes its time",
    },
    Goal {
        what: "a listener that came back",
        series: "projector_listener_reconnects_total",
        aim: "listening sessions end",
    },
];

/// Other counters that tell what a run was like.
const TOLD: [&str; 5] = [
    "projector_leader_changes_total",
    "projector_leaderships_ended_total",
    "projector_batches_total",
    "projector_events_total",
    "projector_retries_total",
];

/// The last known value of every counter, by life of a replica and by series.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    lives: BTreeMap<(String, u32), BTreeMap<String, u64>>,
}

impl Coverage {
    /// Looks at the counters of all replicas that answer.
    pub(super) fn sample(&mut self, slots: &[Slot<'_>]) {
        for slot in slots {
            let Some((200, page)) = slot.replica().get("/metrics") else {
                continue;
            };
            let counters = page.lines().filter_map(|line| {
                let (series, value) = line.rsplit_once(' ')?;
                let name = series.split('{').next()?;
                let value: f64 = value.parse().ok()?;
                name.ends_with("_total")
                    .then(|| (series.to_owned(), value as u64))
            });
            let life = (slot.node.clone(), slot.life);
            self.lives.insert(life, counters.collect());
        }
    }

    pub(super) fn reached(&self, goal: &Goal) -> bool {
        self.sum(goal.series) > 0
    }

    pub(super) fn missed(&self) -> Vec<&'static str> {
        let missed = GOALS.iter().filter(|goal| !self.reached(goal));
        missed.map(|goal| goal.what).collect()
    }

    /// All that is told of a run: words and numbers.
    pub fn told(&self) -> Vec<(String, u64)> {
        let goals = GOALS
            .iter()
            .map(|goal| (goal.series.to_owned(), self.sum(goal.series)));
        let others = TOLD.iter().map(|name| ((*name).to_owned(), self.sum(name)));
        goals.chain(others).collect()
    }

    fn sum(&self, start: &str) -> u64 {
        let series = self.lives.values().flatten();
        let wanted = series.filter(|(series, _)| {
            series
                .strip_prefix(start)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
        });
        wanted.map(|(_, value)| value).sum()
    }
}
