//! Torture: three replicas of the real program on servers of their own, writers that behave badly, and faults of every
//! kind in an order that follows from a seed; then everything heals, and a judge that knows nothing of the program
//! looks at what was left.
//!
//! What it promises: each kind of fault happens at least once in a run and counts only when it was observed; a run that
//! did not reach the interesting states fails as well, since it tested nothing; a failure shows roles, locks, sessions
//! and the ends of the logs. Two runs with one seed do the same things in the same order, though not at the same
//! microsecond.

mod coverage;
mod fault;
mod load;
mod report;
mod world;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

pub use report::Report;

use crate::{
    ServerOptions,
    random::Random,
    site::{Databases, PATIENCE, Programs, Site},
};
use coverage::GOALS;
use load::Load;
use world::World;

/// Leases that end within seconds; a leader that lost its lock finds that out later than its heir comes.
const LEADER: &str = "retry_interval = \"100ms\"\nheartbeat_interval = \"500ms\"\nlocal_lease = \"1500ms\"\n\
                      server_lease = \"2500ms\"\n";

/// Between two faults at most.
const CALM_MAX: Duration = Duration::from_millis(400);

/// So often a state that was not reached by chance is aimed at.
const AIMS_MAX: usize = 10;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Options {
    /// Faults go on for this long at least; longer if not every kind has happened by then.
    pub time: Duration,
    /// All that is random follows from it.
    pub seed: u64,
    /// Where events and rows live: in one database, or on two servers.
    pub databases: Databases,
    /// One leader for everything, or one for each projection.
    pub scope: Scope,
    /// How the servers are set up.
    pub server: ServerOptions,
    /// Set from outside to end the run before its time; what it has started goes with it.
    pub interrupted: Arc<AtomicBool>,
}

/// `[leader] scope`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One leader for everything.
    Host,
    /// Each projection has a leader of its own.
    Projection,
}

/// Runs it.
///
/// # Panics
/// At the first promise that was broken, with all that one needs to understand it.
pub fn run(programs: Programs, options: &Options) -> Report {
    let begun = Instant::now();
    let server = options.server.clone();
    let programs = programs.counting();
    let scope = match options.scope {
        Scope::Host => "host",
        Scope::Projection => "projection",
    };
    let leader = format!("{LEADER}scope = \"{scope}\"\n");
    let site = match options.databases {
        Databases::One => Site::own_server_with(programs, Databases::One, &leader, server),
        Databases::Two => Site::two_servers(programs, &leader, &server),
    };
    site.keep_history();
    let mut random = Random::new(options.seed);
    let mut world = World::new(&site, options.scope, random.number());
    let load = Load::new(random.number());
    std::thread::scope(|scope| {
        // However the nemesis ends, the writers end too.
        let _end = load.end_with();
        load.begin(scope, &site);
        site.begun();
        torment(&mut world, &mut random, options);
    });
    load.resolve_prepared(&site);
    world.heal();
    let healed = Instant::now();
    site.wait();
    let caught_up = healed.elapsed();
    if caught_up > PATIENCE {
        site.fail(&format!(
            "(G) it took {caught_up:?} to catch up after everything had healed"
        ));
    }
    world.coverage.sample(&world.slots);
    let violations = site.judge();
    if !violations.is_empty() {
        let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
        site.fail(&told.join("\n"));
    }
    for slot in &world.slots {
        slot.replica().stop();
    }
    site.eventually("(H) no session and no lock is left", || {
        (site.remains() == (0, 0)).then_some(())
    });
    let missed = world.coverage.missed();
    if !missed.is_empty() {
        site.fail(&format!(
            "(I) this run tested nothing: it never saw {}",
            missed.join(", ")
        ));
    }
    Report {
        seed: options.seed,
        databases: options.databases,
        scope: options.scope,
        took: begun.elapsed(),
        caught_up,
        events: site.events().len(),
        head: site.head(),
        load: load.told(),
        faults: world.faults,
        coverage: world.coverage,
        history: site.history(),
    }
}

/// Every fault once, in an order of this seed; then more of them until the time is over; then those that lead to a
/// state that was not reached yet.
fn torment(world: &mut World<'_>, random: &mut Random, options: &Options) {
    let begun = Instant::now();
    let mut due: Vec<usize> = (0..fault::ALL.len()).collect();
    for last in (1..due.len()).rev() {
        due.swap(last, random.below(last as u64 + 1) as usize);
    }
    while !due.is_empty() || begun.elapsed() < options.time {
        assert!(!options.interrupted.load(Ordering::Relaxed), "interrupted");
        let next = due
            .pop()
            .unwrap_or_else(|| random.below(fault::ALL.len() as u64) as usize);
        if !world.strike(next) && world.faults[next] == 0 {
            // It was not observed: once more, in the end.
            due.insert(0, next);
        }
        world.pause(CALM_MAX);
    }
    for goal in GOALS {
        for _ in 0..AIMS_MAX {
            if world.coverage.reached(&goal) {
                break;
            }
            world.strike(fault::number(goal.aim));
        }
    }
}
