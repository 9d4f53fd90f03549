//! Sessions that the server ends, and what is left of a replica in the end.

use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, QUICK, Site};

use crate::support::programs;

#[test]
fn ended_read_write_and_listen_sessions_are_opened_again_without_a_step_down() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let leader = site.leader("a");
    let mut generator = Generator::new(17);
    site.append(&generator.lines(50), 50);
    site.wait();
    let term = site.status()["leader"]["term"].clone();
    for purpose in ["listen", "read", "write", "lookup"] {
        if purpose == "listen" {
            site.eventually("it listens", || {
                (leader.metric("projector_listening") == Some(1.0)).then_some(())
            });
        }
        let ended = site.end_sessions(&[purpose]);
        // Idle write and look-up sessions may have been given back.
        assert!(
            ended > 0 || matches!(purpose, "write" | "lookup"),
            "there was no {purpose} session"
        );
        site.append(&generator.lines(60), 20);
        site.all_is_right_at_the_head();
    }
    site.eventually("it listens again", || {
        (leader.metric("projector_listening") == Some(1.0)).then_some(())
    });
    assert_eq!(site.status()["leader"]["term"], term, "nobody stepped down");
}

#[test]
fn an_ended_lock_session_ends_the_term_and_work_goes_on_under_a_new_one() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let first = site.leader("a");
    let second = site.replica("b");
    second.stands_by_eventually();
    let mut generator = Generator::new(18);
    let term = |site: &Site| site.status()["leader"]["term"].as_i64();
    for round in 0..3 {
        site.append(&generator.lines(60), 20);
        let before = term(&site);
        assert!(before.is_some(), "round {round}: somebody leads");
        assert!(
            site.end_sessions(&["lock"]) >= 2,
            "both replicas hold a lock session"
        );
        site.eventually("a newer term", || {
            term(&site).filter(|now| Some(*now) > before)
        });
        site.all_is_right_at_the_head();
    }
    first.stop();
    second.stop();
}

#[test]
fn all_sessions_at_once() {
    let site = Site::shared(programs(), Databases::One, QUICK);
    let _replicas = [site.leader("a"), site.replica("b")];
    let mut generator = Generator::new(19);
    for _ in 0..4 {
        site.append(&generator.lines(100), 100);
        site.eventually("there are sessions to end", || {
            (site.end_sessions(&["lock", "listen", "read", "write", "lookup"]) >= 2).then_some(())
        });
    }
    site.all_is_right_at_the_head();
}

#[test]
fn nothing_is_left_after_a_shutdown() {
    for databases in [Databases::One, Databases::Two] {
        let site = Site::shared(programs(), databases, QUICK);
        let (leader, standby) = (site.leader("a"), site.replica("b"));
        standby.stands_by_eventually();
        site.append(&Generator::new(20).lines(100), 20);
        site.wait();
        assert_ne!(
            site.remains(),
            (0, 0),
            "running replicas have sessions and a lock"
        );
        standby.stop();
        leader.stop();
        // A session ends a moment after its client has closed it.
        site.eventually("no session and no lock is left", || {
            (site.remains() == (0, 0)).then_some(())
        });
        let released =
            site.model("select count(*) from projector.leadership where released_at is null");
        assert_eq!(released, "0", "the term was given back");
    }
}

#[test]
fn a_batch_that_runs_when_its_leader_is_told_to_end_is_committed_first() {
    let site = Site::shared(programs(), Databases::One, QUICK);
    let leader = site.leader("a");
    let mut generator = Generator::new(23);
    site.append(&generator.lines(20), 20);
    site.all_is_right_at_the_head();
    // The batch waits inside its transaction until this ends.
    let mut blocker = site.model_session();
    blocker.run("begin");
    blocker.run("lock table order_g1.orders in share mode");
    site.append(&generator.lines(20), 20);
    site.eventually("the batch waits for the lock", || {
        let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' \
                       and application_name like '%/a/write' and datname = current_database()";
        (site.model(waiting) == "1").then_some(())
    });
    leader.terminate();
    leader.logs("told to end");
    blocker.run("rollback");
    assert_eq!(leader.exit_code(), 0, "{}", leader.log());
    // Nobody else was there to do it.
    assert_eq!(site.position("order"), site.head());
    site.rows_are_right();
    assert_eq!(site.remains(), (0, 0));
}

#[test]
fn only_a_commit_without_rows_waits_for_no_disk() {
    let site = Site::shared(programs(), Databases::One, QUICK);
    let leader = site.leader("a");
    let mut generator = Generator::new(24);
    site.append(&generator.lines(50), 50);
    site.all_is_right_at_the_head();
    site.model(
        "create table public.ways (transaction xid8, has_rows boolean, way text); \
         create function public.told() returns trigger language plpgsql as $$ begin \
             insert into public.ways \
             values (pg_current_xact_id(), TG_RELID <> 'projector.checkpoints'::regclass, current_setting('synchronous_commit')); \
             return null; end $$; \
         create trigger told after update on projector.checkpoints for each statement execute function public.told(); \
         create trigger told after insert or update on order_g1.orders for each statement execute function public.told()",
    );
    // Large batches, and small ones, which are one statement.
    site.append(&generator.lines(400), 400);
    site.all_is_right_at_the_head();
    for _ in 0..5 {
        site.append(&generator.lines(1), 1);
        site.wait();
    }
    // Everybody moves over these without a row.
    let wanted = "insert into event_store.events (stream, version, type, data) \
                  select 'nobody-' || gen_random_uuid(), 1, 'NobodyWantsIt', '{}' from generate_series(1, 3)";
    site.store(wanted);
    site.eventually("a checkpoint moves alone", || {
        (site.model("select count(*) from public.ways where way = 'off'") != "0").then_some(())
    });
    let ways = site.model(
        "select string_agg(distinct way, ' ') from public.ways \
         where transaction in (select transaction from public.ways where has_rows)",
    );
    assert_eq!(ways, "on", "a batch is on disk when it is committed");
    leader.stop();
}

#[test]
fn a_checkpoint_that_a_crash_took_back_goes_on_without_a_new_event() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let leader = site.leader("a");
    site.append(&Generator::new(25).lines(50), 50);
    let unwanted = "insert into event_store.events (stream, version, type, data) \
                    select 'nobody-' || n, 1, 'NobodyWantsIt', '{}' from generate_series(1, 20) n";
    site.store(unwanted);
    site.wait();
    let position = "select min(position) from projector.checkpoints";
    let head = site.model(position);
    // What a crash leaves when it takes the commits that waited for no disk.
    site.model("update projector.checkpoints set position = position - 20");
    site.eventually("the checkpoints are at the head again", || {
        (site.model(position) == head).then_some(())
    });
    leader.logs("the checkpoint went back");
    site.all_is_right_at_the_head();
    leader.stop();
}
