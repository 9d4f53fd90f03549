//! Simulated replicas: the real role machines against a simulated lock server, store, network and clock.
//!
//! One thread, one seed, no real time: a run of a minute takes about a millisecond. The machines are those of
//! production; what is simulated is everything that they talk to. Each run ends with "heal everything": then
//! one replica must lead and events must flow, and after a shutdown the lock must be free.
//!
//! A failing seed is printed with the line that repeats it.

mod fault;
mod network;
mod replica;
mod world;

use world::{Coverage, Rules, World};

/// Seeds of one test run.
const SEEDS: u64 = 1_000;

/// Repeats one seed instead of many, with its trace.
const SEED_VARIABLE: &str = "PROJECTOR_SIMULATION_SEED";

fn run(seed: u64, rules: Rules) -> Result<Coverage, String> {
    let mut world = World::new(seed, rules);
    world.run().map_err(|fault| {
        let trace = world.trace();
        format!(
            "seed {seed}: {fault}\n{trace}\nrepeat it: {SEED_VARIABLE}={seed} cargo test -p projector-host --lib simulation"
        )
    })?;
    Ok(world.coverage)
}

fn seeds() -> Vec<u64> {
    std::env::var(SEED_VARIABLE)
        .ok()
        .and_then(|seed| seed.parse().ok())
        .map_or_else(|| (0..SEEDS).collect(), |seed| vec![seed])
}

fn run_all(rules: Rules) -> Coverage {
    let seeds = seeds();
    let mut coverage = Coverage::default();
    for seed in &seeds {
        match run(*seed, rules) {
            Ok(more) => coverage.add(&more),
            Err(report) => panic!("{report}"),
        }
    }
    println!("{} runs: {coverage:?}", seeds.len());
    coverage
}

/// Every kind of fault. Two leaders may exist for a moment here, since a killed session frees the lock before
/// its owner can know; the fence has to make that harmless.
#[test]
fn whatever_happens_each_event_is_applied_once_and_in_order() {
    let coverage = run_all(Rules {
        fence: true,
        kills: true,
    });
    if seeds().len() > 1 {
        coverage.must_have_met_everything();
    }
}

/// Without killed sessions the leases alone keep the leaders apart, however long a replica is frozen or cut off.
#[test]
fn without_killed_sessions_two_leases_are_never_valid_at_once() {
    run_all(Rules {
        fence: true,
        kills: false,
    });
}

/// The checker is worth something: with the fence switched off it has to find doubled events.
#[test]
fn with_the_fence_switched_off_the_checker_complains() {
    let rules = Rules {
        fence: false,
        kills: true,
    };
    let found = (0..SEEDS).filter(|seed| run(*seed, rules).is_err()).count();
    println!("{found} of {SEEDS} runs went wrong without the fence");
    assert!(found > 0, "the checker saw nothing");
}
