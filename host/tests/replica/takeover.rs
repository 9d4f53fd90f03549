//! How fast another replica leads, and that the former leader does no harm.

use std::time::{Duration, Instant};

use projector_testkit::domain::Generator;
use projector_testkit::site::{DEFAULT, Databases, QUICK, Replica, Site};

use crate::support::programs;

/// What is promised.
const TAKEOVER_MAX: Duration = Duration::from_secs(1);

/// From now until another one leads.
fn takeover(site: &Site, next: &Replica<'_>) -> Duration {
    let begun = Instant::now();
    site.eventually("the other replica leads", || next.leads().then_some(()));
    begun.elapsed()
}

#[test]
fn after_kill_9_and_after_sigterm_the_next_replica_leads_within_a_second() {
    let site = Site::shared(programs(), Databases::Two, DEFAULT);
    let mut leader = site.leader("first");
    for (round, gently) in [false, true, false, true].into_iter().enumerate() {
        site.append(&Generator::new(round as u64).lines(50), 50);
        let next = site.replica(&format!("next-{round}"));
        next.stands_by_eventually();
        if gently {
            leader.terminate();
        } else {
            leader.kill();
        }
        let took = takeover(&site, &next);
        eprintln!("round {round}, gently {gently}: {took:?}");
        assert!(
            took <= TAKEOVER_MAX,
            "round {round}, gently {gently}: {took:?}"
        );
        if gently {
            assert_eq!(leader.exit_code(), 0);
        }
        leader = next;
    }
    site.all_is_right_at_the_head();
}

#[test]
fn a_leader_that_slept_beyond_its_lease_is_fenced_and_follows() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let old = site.leader("sleeper");
    let new = site.replica("heir");
    new.stands_by_eventually();
    let mut generator = Generator::new(31);
    // Its next batch waits for this row, so that it falls asleep in the middle of one.
    let mut blocker = site.model_session();
    site.append(&generator.lines(100), 100);
    site.wait();
    blocker.run("begin; select from projector.checkpoints where projection = 'order' for update");
    site.append(&generator.lines(100), 100);
    site.eventually("a batch of the leader waits", || {
        let waiting = "select count(*) from pg_stat_activity where datname = current_database() \
             and application_name like '%/sleeper/write' and wait_event_type = 'Lock'";
        (site.model(waiting) == "1").then_some(())
    });
    old.freeze();
    blocker.run("rollback");
    new.leads_eventually();
    site.append(&generator.lines(100), 100);
    site.all_is_right_at_the_head();
    assert_eq!(old.code("/leaderz"), 0, "a stopped process does not answer");
    old.thaw();
    site.eventually("the sleeper follows", || {
        (old.role() == "follower").then_some(())
    });
    assert!(new.leads(), "leadership stays where it went");
    site.append(&generator.lines(100), 100);
    site.all_is_right_at_the_head();
    let terms = "select count(distinct term) from projector.checkpoints";
    assert_eq!(
        site.model(terms),
        "1",
        "all projections are written by one term"
    );
    old.stop();
    assert!(new.leads());
}

/// Another leader's claim, written by hand: this one still holds its lock and its lease, so only the fence is left.
const FOREIGN_CLAIM: &str = "
    create table public.trespass (projection text);
    create function public.watch() returns trigger language plpgsql as $$ begin
        insert into public.trespass values (new.projection); return new; end $$;
    create trigger watch before update on projector.checkpoints for each row
        when (new.term = 1001 and new.position <> old.position) execute function public.watch();
    begin;
    update projector.leadership set term = 1001, term_id = gen_random_uuid();
    update projector.checkpoints set term = 1001, term_id = gen_random_uuid();
    commit;";

#[test]
fn a_leader_whose_term_was_taken_writes_nothing_even_with_lock_and_lease() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let _leader = site.leader("a");
    let mut generator = Generator::new(32);
    site.append(&generator.lines(60), 20);
    site.wait();
    site.model(FOREIGN_CLAIM);
    site.append(&generator.lines(60), 20);
    site.eventually("a newer term is claimed", || {
        let term = site.model("select min(term) from projector.checkpoints");
        term.parse::<i64>().ok().filter(|term| *term > 1001)
    });
    site.all_is_right_at_the_head();
    assert_eq!(
        site.model("select count(*) from public.trespass"),
        "0",
        "a batch was written under a foreign term"
    );
}
