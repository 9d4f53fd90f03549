//! Three replicas, each behind networks of its own, and what the nemesis can do with them.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::{Scope, coverage::Coverage, fault};
use crate::{
    proxy::{Close, Proxy},
    random::Random,
    site::{Replica, Site},
};

const REPLICAS: usize = 3;

/// A place for a replica, which has many lives.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    pub(super) node: String,
    /// Between it and the event store, and the read model.
    pub(super) networks: [Proxy; 2],
    /// From 1.
    pub(super) life: u32,
    replica: Option<Replica<'a>>,
}

impl<'a> Slot<'a> {
    pub(super) fn replica(&self) -> &Replica<'a> {
        self.replica
            .as_ref()
            .expect("it was started at the beginning")
    }

    fn start(&mut self, site: &'a Site) {
        // The old process is gone first.
        self.replica = None;
        self.life += 1;
        let [store, model] = &self.networks;
        let variables = [
            ("ES_DATABASE_URL", store.url()),
            ("DATABASE_URL", model.url()),
        ];
        self.replica = Some(site.replica_with(&self.node, &["run"], &variables));
    }
}

/// All that there is.
#[derive(Debug)]
pub(super) struct World<'a> {
    pub(super) site: &'a Site,
    pub(super) scope: Scope,
    pub(super) slots: Vec<Slot<'a>>,
    pub(super) random: Random,
    pub(super) coverage: Coverage,
    /// How often each fault was observed.
    pub(super) faults: Vec<u64>,
}

impl<'a> World<'a> {
    pub(super) fn new(site: &'a Site, scope: Scope, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (store, model) = site.urls();
        let slots = (0..REPLICAS).map(|number| {
            let mut slot = Slot {
                node: format!("r{number}"),
                networks: [store, model].map(|url| Proxy::before(url, random.number())),
                life: 0,
                replica: None,
            };
            slot.start(site);
            slot
        });
        Self {
            slots: slots.collect(),
            site,
            scope,
            random,
            coverage: Coverage::default(),
            faults: vec![0; fault::ALL.len()],
        }
    }

    /// Lets a fault happen; false when it was not observed.
    pub(super) fn strike(&mut self, number: usize) -> bool {
        let (name, fault) = fault::ALL[number];
        let begun = Instant::now();
        let observed = fault(self);
        self.faults[number] += u64::from(observed);
        let word = if observed { "" } else { ", but nobody noticed" };
        eprintln!("    {name}: {:.1} s{word}", begun.elapsed().as_secs_f64());
        self.coverage.sample(&self.slots);
        observed
    }

    /// Lets time pass, at most this much.
    pub(super) fn pause(&mut self, most: Duration) {
        let millis = self.random.below(most.as_millis() as u64 + 1);
        thread::sleep(Duration::from_millis(millis));
    }

    /// Lets exactly this much time pass.
    pub(super) fn wait(&self, time: Duration) {
        thread::sleep(time);
    }

    /// Whoever leads, or leads a projection. There must be somebody in the end, whatever happened before; where there
    /// is one leader for all, one that does not know yet that it was replaced is waited for.
    pub(super) fn leader(&self) -> usize {
        self.site
            .eventually("somebody leads, and nobody beside", || {
                let slots = self.slots.iter().enumerate();
                let mut leading = slots.filter(|(_, slot)| slot.replica().leads());
                let (first, _) = leading.next()?;
                let is_alone = leading.next().is_none();
                (is_alone || self.scope == Scope::Projection).then_some(first)
            })
    }

    /// One that does not lead, as a rule.
    pub(super) fn standby(&mut self) -> usize {
        let leader = self.leader();
        (leader + 1 + self.random.below(REPLICAS as u64 - 1) as usize) % REPLICAS
    }

    pub(super) fn any(&mut self) -> usize {
        self.random.below(REPLICAS as u64) as usize
    }

    /// Starts it anew, after a while.
    pub(super) fn start(&mut self, slot: usize) {
        self.slots[slot].start(self.site);
    }

    /// The number of claimed terms.
    pub(super) fn claims(&self) -> i64 {
        let count = self.site.model("select count(*) from history.claims");
        count.parse().unwrap_or_default()
    }

    /// Waits until something was written under the newest term.
    pub(super) fn works(&self) {
        let sql = "select exists (select from history.applied \
                   where term = (select max(term) from history.claims))";
        self.site.eventually("the newest term works", || {
            (self.site.model(sql) == "t").then_some(())
        });
    }

    /// Waits for a term that is newer than these.
    pub(super) fn claimed_after(&self, claims: i64) {
        self.site.eventually("another term is claimed", || {
            (self.claims() > claims).then_some(())
        });
    }

    /// Everything that was broken on purpose is whole again, and every replica runs.
    pub(super) fn heal(&mut self) {
        for slot in 0..REPLICAS {
            let one = &self.slots[slot];
            for network in &one.networks {
                network.heal();
                // Connections that lost a reply for ever would otherwise wait for their time-outs.
                network.close(Close::Reset);
            }
            one.replica().thaw();
            if one.replica().ended().is_some() {
                self.start(slot);
            }
        }
        for server in self.site.servers() {
            if server.has_ended() {
                server.start_again().expect("its data are whole");
            }
        }
    }
}
