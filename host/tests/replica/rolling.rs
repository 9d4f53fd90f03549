//! A rolling restart under load: every replica is replaced, again and again, and hardly anybody notices.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use projector_testkit::domain::Generator;
use projector_testkit::site::{DEFAULT, Databases, Site};

use crate::support::programs;

const ROUNDS: usize = 20;
const REPLICAS: usize = 3;

/// From the signal to the next claim, the batches under way included.
const LEADERLESS_MAX: Duration = Duration::from_secs(1);

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = now.expect("it is later than 1970").as_micros();
    i64::try_from(micros).expect("for long")
}

#[test]
fn twenty_rolling_restarts_under_load_leave_nobody_without_a_leader_for_a_second() {
    let site = Site::shared(programs(), Databases::Two, DEFAULT);
    site.keep_history();
    let names: Vec<String> = (0..REPLICAS).map(|number| format!("r{number}")).collect();
    let mut replicas: Vec<_> = names.iter().map(|name| site.replica(name)).collect();
    site.begun();
    let done = AtomicBool::new(false);
    let mut handovers = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut generator = Generator::new(38);
            while !done.load(Ordering::SeqCst) {
                site.append(&generator.lines(20), 5);
            }
        });
        for round in 0..ROUNDS {
            for number in 0..REPLICAS {
                let led = replicas[number].leads();
                let told_at = now();
                replicas[number].stop();
                if led {
                    handovers.push((round, told_at));
                }
                replicas[number] = site.replica(&names[number]);
                site.eventually("it takes part", || {
                    let role = replicas[number].role();
                    matches!(role.as_str(), "follower" | "leading").then_some(())
                });
                site.eventually("somebody leads", || {
                    replicas.iter().any(|replica| replica.leads()).then_some(())
                });
            }
        }
        done.store(true, Ordering::SeqCst);
    });
    site.all_is_right_at_the_head();
    assert_eq!(site.judge(), []);
    let claims = site.history().claims;
    assert!(
        handovers.len() >= ROUNDS,
        "in each round the leader is replaced once at least"
    );
    for (round, told_at) in handovers {
        let next = claims.iter().find(|claim| claim.at > told_at);
        let next = next.expect("somebody led in the end");
        let took = Duration::from_micros((next.at - told_at).unsigned_abs());
        assert!(took <= LEADERLESS_MAX, "round {round}: {took:?}");
    }
}
