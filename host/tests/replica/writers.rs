//! Writers that take their time, roll back, use savepoints: no event is skipped and none comes twice.

use projector_testkit::domain::Generator;
use projector_testkit::random::Random;
use projector_testkit::site::{Databases, QUICK, Session, Site};

use crate::support::programs;

/// Appends some events in the open transaction, some of them in vain.
fn append_some(session: &mut Session, generator: &mut Generator, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let draft = generator.draft();
        let text = |text: &str| format!("$q${text}$q$");
        let events = serde_json::json!([{ "type": draft.kind, "data": draft.data }]);
        let append = format!(
            "select from event_store.append({}, null, {}::jsonb)",
            text(&draft.stream),
            text(&events.to_string())
        );
        if random.percent(30) {
            session.run(&format!("savepoint s; {append}; rollback to savepoint s"));
        } else {
            session.run(&append);
        }
    }
}

#[test]
fn rollbacks_and_savepoints_leave_holes_that_nobody_falls_into() {
    const SEED: u64 = 99;
    eprintln!("seed {SEED}");
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let mut replicas = [site.replica("a"), site.replica("b")];
    site.begun();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let site = &site;
            scope.spawn(move || {
                let mut random = Random::new(SEED + writer);
                let mut generator = Generator::new(SEED);
                generator.lines(100 * writer as usize);
                let mut session = site.session();
                for _ in 0..60 {
                    session.run("begin");
                    append_some(&mut session, &mut generator, &mut random);
                    session.run(if random.percent(35) {
                        "rollback"
                    } else {
                        "commit"
                    });
                }
            });
        }
        for kill in 0..2 {
            let leader = site.eventually("somebody leads", || {
                replicas.iter().position(|replica| replica.leads())
            });
            site.eventually("something was applied", || {
                (site.position("order") > 20 * (kill + 1)).then_some(())
            });
            replicas[leader].kill();
            replicas[leader] = site.replica(&format!("after-kill-{kill}"));
            site.rows_are_right();
        }
    });
    let events = site.events().len() as i64;
    assert!(events > 200, "the writers wrote only {events}");
    assert!(site.head() > events, "rollbacks left no holes");
    site.all_is_right_at_the_head();
}

#[test]
fn an_open_writer_holds_the_projections_and_is_named() {
    let site = Site::shared(programs(), Databases::One, QUICK);
    let _leader = site.leader("a");
    let mut generator = Generator::new(5);
    site.append(&generator.lines(50), 50);
    site.wait();
    let mut writer = site.session();
    let pid = writer.run("set application_name = 'slow importer'; select pg_backend_pid()");
    writer.run("begin");
    writer.run(
        "select from event_store.append('order-x', null, '[{\"type\": \"Slow\", \"data\": {}}]')",
    );
    site.append(&generator.lines(50), 50);
    let held = site.eventually("the order projection is held", || {
        let status = site.status_of("order");
        (status["state"] == "held" && status["held"]["waiting_for"][0]["pid"].is_number())
            .then_some(status)
    });
    assert_eq!(held["position"], 50, "{held}");
    assert_eq!(held["held"]["position"], 51, "{held}");
    let waits_for = &held["held"]["waiting_for"][0];
    assert_eq!(waits_for["pid"].to_string(), pid, "{held}");
    assert_eq!(waits_for["application_name"], "slow importer", "{held}");
    site.rows_are_right();
    writer.run("commit");
    site.all_is_right_at_the_head();
}
