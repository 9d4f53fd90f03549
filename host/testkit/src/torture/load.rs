//! Writers that behave as badly as writers may: several at once, on the same streams, slow, with rollbacks, savepoints
//! and prepared transactions.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::{self, Scope},
    time::Duration,
};

use serde_json::json;

use crate::{
    domain::{Draft, Generator},
    random::Random,
    site::{Session, Site},
};

const WRITERS: u64 = 6;

/// Drafts that lie between two writers, so that they do not say the same at the same time.
const APART: u64 = 50;

/// Nobody waits longer than this for another's stream.
const SETTINGS: &str = "set application_name = 'torture writer'; set lock_timeout = '2s'";

/// What was done, by all writers.
#[derive(Debug, Default)]
pub(super) struct Load {
    seed: u64,
    over: AtomicBool,
    committed: AtomicU64,
    rolled_back: AtomicU64,
    savepoints: AtomicU64,
    slow: AtomicU64,
    prepared: AtomicU64,
    /// Ended by an error: a restart, a lock time-out, a deadlock.
    lost: AtomicU64,
}

/// Ends the writers when it goes.
pub(super) struct End<'a>(&'a Load);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
    }
}

impl Load {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    pub(super) fn end_with(&self) -> End<'_> {
        End(self)
    }

    pub(super) fn begin<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        site: &'scope Site,
    ) {
        for number in 0..WRITERS {
            scope.spawn(move || self.write(site, number));
        }
    }

    /// Words and numbers for the report.
    pub(super) fn told(&self) -> Vec<(&'static str, u64)> {
        let count = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        vec![
            ("committed", count(&self.committed)),
            ("rolled back", count(&self.rolled_back)),
            ("savepoints rolled back", count(&self.savepoints)),
            ("slow", count(&self.slow)),
            ("prepared", count(&self.prepared)),
            ("lost to faults", count(&self.lost)),
        ]
    }

    /// Ends prepared transactions that their writers did not live to end.
    pub(super) fn resolve_prepared(&self, site: &Site) {
        let left =
            site.store("select gid from pg_prepared_xacts where database = current_database()");
        for (number, gid) in left.lines().enumerate() {
            let how = if number % 2 == 0 {
                "commit"
            } else {
                "rollback"
            };
            site.store(&format!("{how} prepared '{gid}'"));
        }
    }

    fn write(&self, site: &Site, number: u64) {
        let mut random = Random::new(self.seed ^ (number + 1));
        // The same streams for all.
        let mut generator = Generator::new(self.seed);
        generator.lines((number * APART) as usize);
        let mut session = open(site);
        while !self.over.load(Ordering::SeqCst) {
            if !self.transaction(&mut session, &mut generator, &mut random, number) {
                self.lost.fetch_add(1, Ordering::SeqCst);
                session.run("rollback");
                if session.run("select 1") != "1" {
                    pause(&mut random, 200);
                    session = open(site);
                    finish_prepared(&mut session, number);
                }
            }
            pause(&mut random, 20);
        }
    }

    /// One transaction; false when it was lost.
    fn transaction(
        &self,
        session: &mut Session,
        generator: &mut Generator,
        random: &mut Random,
        number: u64,
    ) -> bool {
        let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::SeqCst);
        let kind = random.below(100);
        let prepares = kind >= 98;
        session.run("begin");
        if prepares {
            // A transaction that notifies cannot be prepared.
            session.run("set local projector.notify = 'off'");
        }
        for _ in 0..1 + random.below(3) {
            append(session, &generator.draft());
            if random.percent(10) {
                session.run("savepoint s");
                append(session, &generator.draft());
                session.run("rollback to savepoint s");
                count(&self.savepoints);
            }
        }
        match kind {
            0..=19 => {
                count(&self.rolled_back);
                session.run("rollback");
                return true;
            }
            20..=23 => {
                count(&self.slow);
                pause(random, 500);
            }
            _ => {}
        }
        // An aborted transaction answers nothing.
        if session.run("select 'alive'") != "alive" {
            return false;
        }
        if prepares {
            count(&self.prepared);
            let gid = format!("writer-{number}-{}", random.number());
            session.run(&format!("prepare transaction '{gid}'"));
            pause(random, 300);
            let how = if random.percent(50) {
                "commit"
            } else {
                "rollback"
            };
            session.run(&format!("{how} prepared '{gid}'"));
        } else {
            session.run("commit");
            count(&self.committed);
        }
        true
    }
}

fn open(site: &Site) -> Session {
    let mut session = site.session();
    session.run(SETTINGS);
    session
}

/// What a session had prepared outlives it, and its locks with it.
fn finish_prepared(session: &mut Session, number: u64) {
    let left = session.run(&format!(
        "select gid from pg_prepared_xacts where gid like 'writer-{number}-%'"
    ));
    for gid in left.lines() {
        session.run(&format!("rollback prepared '{gid}'"));
    }
}

/// Appends a draft in the open transaction.
pub(super) fn append(session: &mut Session, draft: &Draft) {
    let events = json!([{ "type": draft.kind, "data": draft.data }]);
    session.run(&format!(
        "select from event_store.append($torture${}$torture$, null, $torture${events}$torture$::jsonb)",
        draft.stream
    ));
}

fn pause(random: &mut Random, millis_max: u64) {
    thread::sleep(Duration::from_millis(random.below(millis_max + 1)));
}
