//! The machine alone: a path through its states, and what holds on every path.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

const TERM: Term = Term(7);

fn at(millis: u64) -> Moment {
    Moment(Duration::from_millis(millis))
}

/// A machine that is told one thing after another, and the steps it asked for.
struct Run {
    machine: Machine,
    now: u64,
}

impl Run {
    fn new() -> Self {
        Self {
            machine: Machine::new(Timing::default(), at(0), 1),
            now: 0,
        }
    }

    fn tell(&mut self, input: Input) -> Vec<Action> {
        self.machine.step(at(self.now), Some(input))
    }

    fn wait(&mut self, millis: u64) -> Vec<Action> {
        self.now += millis;
        self.machine.step(at(self.now), None)
    }

    fn leading() -> Self {
        let mut run = Self::new();
        assert_eq!(run.wait(0), [Action::Open]);
        assert_eq!(run.tell(Input::Opened), [Action::Try]);
        let won = Input::Won { sent_at: at(0) };
        assert_eq!(run.tell(won), [Action::Beat { deep: true }]);
        assert_eq!(
            run.tell(beat(0)),
            [Action::Claim],
            "the deep check comes first"
        );
        assert_eq!(run.tell(Input::Claimed(TERM)), []);
        run
    }

    fn phase(&self) -> Phase {
        self.machine.phase()
    }
}

fn beat(sent_at: u64) -> Input {
    Input::Beat {
        sent_at: at(sent_at),
        resign_requested: false,
    }
}

#[test]
fn a_leader_heartbeats_and_trusts_itself_from_the_time_of_sending() {
    let mut run = Run::leading();
    assert_eq!(run.wait(1_000), [Action::Beat { deep: false }]);
    run.now = 1_900;
    assert_eq!(run.tell(beat(1_000)), []);
    let trusted_until = at(5_000);
    assert_eq!(
        run.phase(),
        Phase::Leading {
            term: TERM,
            trusted_until
        }
    );
}

#[test]
fn a_leader_that_hears_nothing_stops_when_its_lease_is_over_and_drops_the_session() {
    let mut run = Run::leading();
    assert_eq!(run.wait(1_000), [Action::Beat { deep: false }]);
    assert_eq!(run.wait(2_999), []);
    assert!(matches!(run.phase(), Phase::Leading { .. }));
    assert_eq!(run.wait(1), [Action::Drop]);
    let cause = Cause::LeaseRanOut;
    assert_eq!(run.phase(), Phase::Draining { term: TERM, cause });
    assert_eq!(run.tell(Input::Drained(TERM)), []);
    assert_eq!(run.phase(), Phase::Follower);
}

#[test]
fn a_leader_that_wakes_from_a_long_sleep_asks_nothing_and_stops() {
    let mut run = Run::leading();
    assert_eq!(run.wait(3_600_000), [Action::Drop]);
    let cause = Cause::LeaseRanOut;
    assert_eq!(run.phase(), Phase::Draining { term: TERM, cause });
}

#[test]
fn a_failed_heartbeat_ends_the_leadership_at_once_and_the_replica_competes_again() {
    let mut run = Run::leading();
    run.wait(1_000);
    assert_eq!(run.tell(Input::BeatFailed), [Action::Drop]);
    let cause = Cause::SessionLost;
    assert_eq!(run.phase(), Phase::Draining { term: TERM, cause });
    run.tell(Input::Drained(TERM));
    assert_eq!(run.wait(1_500), [Action::Open]);
}

#[test]
fn shutdown_waits_for_the_work_and_then_unlocks() {
    let mut run = Run::leading();
    assert_eq!(run.tell(Input::Shutdown), []);
    assert_eq!(run.wait(1_000), [Action::Beat { deep: false }]);
    assert_eq!(run.tell(beat(1_000)), []);
    let release = Action::Release { term: Some(TERM) };
    assert_eq!(run.tell(Input::Drained(TERM)), [release]);
    assert_eq!(run.tell(Input::Released), []);
    assert_eq!(run.phase(), Phase::Stopped);
    assert_eq!(run.machine.wake_at(), None);
}

#[test]
fn work_that_does_not_end_is_waited_for_only_until_the_drain_timeout() {
    let mut run = Run::leading();
    run.tell(Input::Shutdown);
    let mut released_at = None;
    while run.now < 30_000 && released_at.is_none() {
        for action in run.wait(500) {
            match action {
                Action::Beat { .. } => drop(run.tell(beat(run.now))),
                Action::Release { .. } => released_at = Some(run.now),
                other => panic!("{other:?} while draining"),
            }
        }
    }
    assert_eq!(released_at, Some(20_000));
}

#[test]
fn a_resigned_leader_leaves_the_lock_alone_for_the_cooldown() {
    let mut run = Run::leading();
    let asked = Input::Beat {
        sent_at: at(900),
        resign_requested: true,
    };
    run.wait(1_000);
    assert_eq!(run.tell(asked), []);
    let cause = Cause::Resigned;
    assert_eq!(run.phase(), Phase::Draining { term: TERM, cause });
    run.tell(Input::Drained(TERM));
    run.tell(Input::Released);
    assert_eq!(run.phase(), Phase::Follower);
    assert_eq!(run.wait(4_999), []);
    assert_eq!(run.wait(1), [Action::Open]);
}

#[test]
fn a_hint_brings_the_next_try_forward_also_when_one_is_under_way_but_not_for_a_resigned_replica() {
    let soon = 3; // hint_delay_max
    let mut run = Run::new();
    run.wait(0);
    run.tell(Input::Opened);
    run.tell(Input::Held);
    run.wait(100);
    run.tell(Input::Hint);
    assert_eq!(
        run.wait(soon),
        [Action::Try],
        "the interval is 200 ms at least"
    );
    // This try may have been sent before the lock became free.
    assert_eq!(run.tell(Input::Hint), []);
    run.tell(Input::Held);
    assert_eq!(run.wait(soon), [Action::Try]);
    run.tell(Input::Held);
    assert_eq!(run.wait(soon), [], "one hint, one try");

    let mut run = Run::leading();
    run.tell(Input::Resign);
    run.tell(Input::Drained(TERM));
    run.tell(Input::Released);
    run.tell(Input::Hint);
    assert_eq!(run.wait(4_000), [], "it stays away for its cooldown");
}

#[test]
fn a_heartbeat_that_fails_after_the_lease_is_a_lease_that_ran_out() {
    let mut run = Run::leading();
    run.wait(1_000);
    run.now = 4_000;
    run.tell(Input::BeatFailed);
    let cause = Cause::LeaseRanOut;
    assert_eq!(run.phase(), Phase::Draining { term: TERM, cause });
}

#[test]
fn a_leader_whose_loops_stall_resigns() {
    let mut run = Run::leading();
    let mut now = 0;
    while matches!(run.phase(), Phase::Leading { .. }) && now < 100_000 {
        now += 100;
        if now < 30_000 {
            run.tell(Input::Progress(at(now)));
        }
        for action in run.wait(100) {
            match action {
                Action::Beat { .. } => drop(run.tell(beat(run.now))),
                Action::CheckTerm => drop(run.tell(Input::TermHeld)),
                _ => {}
            }
        }
    }
    let cause = Cause::Stalled;
    assert_eq!(run.phase(), Phase::Draining { term: TERM, cause });
    assert_eq!(run.now, 89_900, "stall_limit after the last tick");
}

#[test]
fn a_claim_that_never_works_gives_the_lock_back() {
    let mut run = Run::new();
    run.wait(0);
    run.tell(Input::Opened);
    let mut actions = run.tell(Input::Won { sent_at: at(0) });
    while !actions.iter().any(|a| matches!(a, Action::Release { .. })) {
        assert!(run.now < 13_000, "still {:?}", run.phase());
        for action in std::mem::take(&mut actions) {
            actions.extend(match action {
                Action::Beat { .. } => run.tell(beat(run.now)),
                Action::Claim => run.tell(Input::ClaimFailed),
                other => panic!("{other:?} while claiming"),
            });
        }
        if actions.is_empty() {
            actions = run.wait(100);
        }
    }
    assert_eq!(run.now, 12_000);
}

#[test]
fn timing_that_contradicts_itself_is_refused_with_the_names_of_the_options() {
    assert!(Timing::default().check().is_ok());
    let check = |change: fn(&mut Timing)| {
        let mut timing = Timing::default();
        change(&mut timing);
        timing.check().expect_err("contradicts itself").to_string()
    };
    assert!(check(|t| t.local_lease = Duration::from_millis(2_999)).contains("heartbeat_interval"));
    assert!(check(|t| t.server_lease = Duration::from_millis(4_999)).contains("server_lease"));
    assert!(check(|t| t.retry_interval = Duration::ZERO).contains("retry_interval"));
    assert!(check(|t| t.retry_interval = Duration::from_secs(6)).contains("retry_interval"));
}

/// Results that may come back, whatever the machine does.
fn inputs() -> impl Strategy<Value = Vec<(u8, u16)>> {
    prop::collection::vec((any::<u8>(), 0_u16..3_000), 1..400)
}

proptest! {
    /// Any order of answers, failures, requests and delays: the lock never stacks, one step at a time, no
    /// leading past the lease, and after shutdown the machine comes to an end.
    #[test]
    fn what_holds_on_every_path(script in inputs(), seed: u64) {
        let mut machine = Machine::new(Timing::default(), at(0), seed);
        let mut now = 0_u64;
        let mut lane: Option<(Action, u64)> = None;
        let mut term_step: Option<Action> = None;
        let mut held = false;
        let mut terms = 0;
        let mut pending: Vec<Action> = machine.step(at(0), None);
        for (pick, delay) in script {
            for action in pending.drain(..) {
                match action {
                    Action::Drop => { lane = None; held = false; }
                    Action::DropTermStep => term_step = None,
                    Action::Claim | Action::CheckTerm => {
                        prop_assert!(held, "{action:?} without the lock");
                        prop_assert!(term_step.is_none());
                        term_step = Some(action);
                    }
                    Action::Open | Action::Try => {
                        prop_assert!(!held, "{action:?} while the lock is held");
                        prop_assert!(lane.is_none());
                        lane = Some((action, now));
                    }
                    Action::Beat { .. } | Action::Release { .. } => {
                        prop_assert!(held, "{action:?} without the lock");
                        prop_assert!(lane.is_none());
                        lane = Some((action, now));
                    }
                }
            }
            let wake = machine.wake_at();
            prop_assert!(wake.is_some() || matches!(machine.phase(), Phase::Stopped));
            let due = wake.map_or(u64::MAX, |wake| u64::try_from(wake.0.as_millis()).unwrap_or(u64::MAX));
            now = (now + u64::from(delay)).min(due.max(now) + 1);
            let input = match (pick % 16, lane, term_step) {
                (0..=3, Some((action, sent)), _) => {
                    lane = None;
                    let sent_at = at(sent);
                    Some(match (action, pick / 16) {
                        (Action::Open, 0..=11) => Input::Opened,
                        (Action::Open, 12) => Input::OpenRefused,
                        (Action::Open, _) => Input::OpenFailed,
                        (Action::Try, 0..=9) => { held = true; Input::Won { sent_at } }
                        (Action::Try, 10..=13) => Input::Held,
                        (Action::Try, _) => Input::TryFailed,
                        (Action::Release { .. }, _) => { held = false; Input::Released }
                        (_, 0..=13) => Input::Beat { sent_at, resign_requested: pick / 16 == 0 },
                        (_, _) => Input::BeatFailed,
                    })
                }
                (4..=6, _, Some(action)) => {
                    term_step = None;
                    Some(match (action, pick / 16) {
                        (Action::Claim, 0..=11) => { terms += 1; Input::Claimed(Term(terms)) }
                        (Action::Claim, 12) => Input::ClaimRefused,
                        (Action::Claim, _) => Input::ClaimFailed,
                        (_, 0..=12) => Input::TermHeld,
                        (_, 13) => Input::TermUnknown,
                        (_, _) => Input::TermLost,
                    })
                }
                (7, _, _) => Some(Input::Drained(Term(terms))),
                (8, _, _) => Some(Input::Progress(at(now))),
                (9, _, _) => Some(Input::Hint),
                (10, _, _) if pick == 10 => Some(Input::Resign),
                _ => None,
            };
            pending = machine.step(at(now), input);
            if let Phase::Leading { trusted_until, .. } = machine.phase() {
                prop_assert!(at(now) < trusted_until, "leads past its lease");
            }
        }
        machine.step(at(now), Some(Input::Shutdown));
        for _ in 0..100 {
            let Some(wake) = machine.wake_at() else { break };
            machine.step(wake, None);
        }
        prop_assert_eq!(machine.phase(), Phase::Stopped);
    }
}
