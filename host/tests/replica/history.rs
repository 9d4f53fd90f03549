//! The history that the database itself writes, judged: with the fence nothing is wrong, without it the judge must say
//! so. Which proves that the judge sees what the fence is for.

use std::sync::atomic::{AtomicBool, Ordering};

use projector_testkit::domain::Generator;
use projector_testkit::history::Violation;
use projector_testkit::proxy::Proxy;
use projector_testkit::site::{Databases, Replica, Site};

use crate::support::programs;

/// A leader whose lock is gone finds that out late, and its heir comes early: the fence alone stands between them.
const LATE: &str = "retry_interval = \"50ms\"\nheartbeat_interval = \"1s\"\nlocal_lease = \"3s\"\nserver_lease = \"4s\"\n";

/// The guards in the first statement of a batch, and what takes their place. The program has no switch for it.
const FENCE: &str = "term = $6 AND term_id = $7 AND position = $8";
const NO_FENCE: &str = "$6 > 0 AND $7 IS NOT NULL AND $8 >= 0";

/// The rule that is broken when a leader writes whose term is over. What it spoils beside that depends on chance: a
/// batch that finds other rows than it looked up is refused, with a fence or without.
const STALE: char = 'C';

/// So often may leaders lose their locks before something has to be seen.
const LOSSES_MAX: usize = 20;

/// Leaders lose their locks while events flow, until something is seen; then the judge speaks.
struct Outcome {
    violations: Vec<Violation>,
    forged: u64,
    fenced: f64,
}

fn leaders_lose_their_locks(fence: bool) -> Outcome {
    let site = Site::shared(programs(), Databases::Two, LATE);
    site.keep_history();
    let proxy = Proxy::before(site.urls().1, 7);
    if !fence {
        proxy.forge(FENCE, NO_FENCE);
    }
    let start = |node: &str| site.replica_with(node, &["run"], &[("DATABASE_URL", proxy.url())]);
    let replicas = [start("a"), start("b")];
    site.begun();
    let fenced = |replicas: &[Replica<'_>]| -> f64 {
        let counts = replicas
            .iter()
            .filter_map(|replica| replica.metric("projector_fenced_batches_total"));
        counts.sum()
    };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut generator = Generator::new(4);
            let mut session = site.session();
            while !done.load(Ordering::SeqCst) {
                append(&mut session, &mut generator);
            }
        });
        for _ in 0..LOSSES_MAX {
            let claims = claims(&site);
            site.eventually("there are lock sessions to end", || {
                (site.end_sessions(&["lock"]) > 0).then_some(())
            });
            site.eventually("another term is claimed and works", || {
                (self::claims(&site) > claims && works(&site)).then_some(())
            });
            let seen = match fence {
                true => fenced(&replicas) > 0.0,
                false => broken(&site.history().violations()).contains(STALE),
            };
            if seen {
                break;
            }
        }
        done.store(true, Ordering::SeqCst);
    });
    let fenced = fenced(&replicas);
    if fence {
        site.all_is_right_at_the_head();
    }
    for replica in replicas {
        replica.terminate();
        replica.exit_code();
    }
    Outcome {
        violations: site.judge(),
        forged: proxy.forged(),
        fenced,
    }
}

fn append(session: &mut projector_testkit::site::Session, generator: &mut Generator) {
    let draft = generator.draft();
    let events = serde_json::json!([{ "type": draft.kind, "data": draft.data }]);
    session.run(&format!(
        "select from event_store.append($q${}$q$, null, $q${events}$q$::jsonb)",
        draft.stream
    ));
}

/// The letters of the rules that were broken, each once, in their order.
fn broken(violations: &[Violation]) -> String {
    let rules: std::collections::BTreeSet<char> =
        violations.iter().map(|found| found.rule).collect();
    rules.into_iter().collect()
}

fn claims(site: &Site) -> i64 {
    let count = site.model("select count(*) from history.claims");
    count.parse().unwrap_or_default()
}

/// Whether something was written under the newest term.
fn works(site: &Site) -> bool {
    site.model("select exists (select from history.applied where term = (select max(term) from history.claims))")
        == "t"
}

#[test]
fn with_the_fence_a_leader_without_its_lock_writes_nothing_and_the_history_is_right() {
    let outcome = leaders_lose_their_locks(true);
    assert_eq!(outcome.violations, []);
    assert_eq!(outcome.forged, 0);
    assert!(
        outcome.fenced > 0.0,
        "no batch was fenced in {LOSSES_MAX} losses"
    );
}

#[test]
fn without_the_fence_the_judge_complains() {
    let outcome = leaders_lose_their_locks(false);
    assert!(
        outcome.forged > 0,
        "the fence was not found in the statements: is it written in another way now?"
    );
    for found in &outcome.violations {
        eprintln!("{found}");
    }
    let broken = broken(&outcome.violations);
    assert!(broken.contains(STALE), "the judge saw only {broken:?}");
}

#[test]
fn what_was_written_down_is_not_changed() {
    let site = Site::shared(programs(), Databases::One, LATE);
    site.keep_history();
    let _leader = site.leader("a");
    site.append(&Generator::new(1).lines(20), 20);
    site.all_is_right_at_the_head();
    assert_eq!(site.judge(), []);
    let mut session = site.model_session();
    session.run("delete from history.applied");
    session.run("update history.claims set node = 'x'");
    let kept = site.model("select (select count(*) from history.applied) > 0, (select count(*) from history.claims where node = 'a')");
    assert_eq!(kept, "t|1");
    // A checkpoint that somebody moves by hand is a stranger's batch.
    session
        .run("update projector.checkpoints set position = position - 1 where projection = 'order'");
    site.eventually("the judge complains", || {
        site.judge()
            .iter()
            .any(|found| found.rule == 'C')
            .then_some(())
    });
}
