//! Commands that work on a running site, and their exit codes.

use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, QUICK, Site};

use crate::support::programs;

#[test]
fn pause_holds_one_projection_and_resume_lets_it_catch_up() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let leader = site.leader("a");
    let mut generator = Generator::new(51);
    site.append(&generator.lines(50), 50);
    site.wait();
    site.runs(&["pause", "order", "--reason", "month's end"]);
    site.runs(&["pause", "order"]);
    let before = site.position("order");
    site.append(&generator.lines(50), 50);
    site.runs(&["wait", "scheduling", "service-request", "--until-caught-up"]);
    let answer = site.run(&["wait", "--until-caught-up", "--timeout", "20s"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(
        answer.error.contains("order") && answer.error.contains("paused"),
        "{answer:?}"
    );
    assert_eq!(site.position("order"), before);
    assert_eq!(site.status_of("order")["state"], "paused");
    site.rows_are_right();
    // A pause outlives its leader.
    leader.stop();
    let next = site.leader("b");
    next.logs("leading");
    assert_eq!(site.status_of("order")["state"], "paused");
    site.runs(&["resume", "order"]);
    site.runs(&["resume", "order"]);
    site.all_is_right_at_the_head();
    assert_eq!(
        site.run(&["pause", "ordre"]).code,
        1,
        "there is no such projection"
    );
}

#[test]
fn wait_times_out_and_reaches_positions() {
    let site = Site::shared(programs(), Databases::One, QUICK);
    let empty = site.run(&["wait", "order", "--until-caught-up", "--timeout", "100ms"]);
    assert_eq!(empty.code, 1, "{empty:?}");
    site.append(&Generator::new(52).lines(30), 30);
    let nobody = site.run(&["wait", "order", "--until-caught-up", "--timeout", "200ms"]);
    assert_eq!(nobody.code, 1, "{nobody:?}");
    let unnamed = site.run(&["wait", "--until-caught-up", "--timeout", "200ms"]);
    assert_eq!(unnamed.code, 1, "{unnamed:?}");
    let _starting = site.replica("a");
    site.runs(&["wait", "--until-caught-up"]);
    site.runs(&["wait", "order", "--position", "30"]);
    assert_eq!(site.position("order"), 30);
    let beyond = site.run(&["wait", "order", "--position", "31", "--timeout", "200ms"]);
    assert_eq!(beyond.code, 1, "{beyond:?}");
    assert!(beyond.error.contains("30"), "{beyond:?}");
    assert_eq!(site.run(&["wait"]).code, 2, "a goal is needed");
}

#[test]
fn until_caught_up_ends_alone_beside_another_leader_and_at_what_stands_still() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let mut generator = Generator::new(53);
    site.append(&generator.lines(200), 50);
    let alone = ["run", "--until-caught-up", "--timeout", "25s"];
    let replica = site.replica_with("alone", &alone, &[]);
    assert_eq!(replica.exit_code(), 0, "{}", replica.log());
    site.all_is_right_at_the_head();
    site.eventually("nothing is left", || {
        (site.remains() == (0, 0)).then_some(())
    });

    let leader = site.leader("other");
    site.append(&generator.lines(100), 50);
    let beside = site.replica_with("beside", &alone, &[]);
    assert_eq!(beside.exit_code(), 0, "{}", beside.log());
    assert!(leader.leads(), "the other one leads on");

    site.runs(&["pause", "scheduling"]);
    site.append(&generator.lines(100), 50);
    let paused = site.replica_with("beside-paused", &alone, &[]);
    assert_eq!(paused.exit_code(), 1, "{}", paused.log());
    let log = paused.log();
    assert!(
        log.contains("scheduling") && log.contains("paused"),
        "{log}"
    );
    leader.stop();
    let paused = site.replica_with("alone-paused", &alone, &[]);
    assert_eq!(paused.exit_code(), 1, "{}", paused.log());

    site.runs(&["resume", "scheduling"]);
    let again = site.replica_with("again", &alone, &[]);
    assert_eq!(again.exit_code(), 0, "{}", again.log());
    site.all_is_right_at_the_head();
}

#[test]
fn commands_change_nothing_that_a_newer_version_has_migrated() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let _leader = site.leader("a");
    let later = |part: &str| {
        format!(
            "insert into projector_migrations (part, version, name, checksum) values ('{part}', 99, 'later', 'x')"
        )
    };
    site.model(&later("read_model").replace("into ", "into projector."));
    for command in ["pause", "resume"] {
        let answer = site.run(&[command, "order"]);
        assert_eq!(answer.code, 78, "{answer:?}");
        assert!(answer.error.contains("PH0203"), "{answer:?}");
    }
    site.store(&later("event_store").replace("into ", "into event_store."));
    let answer = site.run(&["append", "/dev/null"]);
    assert_eq!(answer.code, 78, "{answer:?}");
    assert!(answer.error.contains("PH0203"), "{answer:?}");
}

#[test]
fn an_acceptance_is_recorded_after_a_plain_resume_too_and_lapses_with_the_next_commit() {
    let site = Site::shared(programs(), Databases::One, QUICK);
    let mut generator = Generator::new(54);
    let leader = site.leader("a");
    site.append(&generator.lines(20), 20);
    site.all_is_right_at_the_head();
    leader.stop();
    site.model(
        "update projector.generations set sha256 = repeat('0', 64) where projection = 'order'",
    );
    let until = ["run", "--until-caught-up", "--timeout", "25s"];
    site.append(&generator.lines(20), 20);
    let refused = site.replica_with("refused", &until, &[]);
    assert_eq!(refused.exit_code(), 1, "{}", refused.log());
    site.runs(&["resume", "order"]);
    site.runs(&["resume", "order", "--accept-plugin"]);
    let goes_on = site.replica_with("goes-on", &until, &[]);
    assert_eq!(goes_on.exit_code(), 0, "{}", goes_on.log());
    site.all_is_right_at_the_head();
    // On a projection that needs none, an acceptance must not wait for a later file.
    site.runs(&["resume", "order", "--accept-plugin"]);
    site.append(&generator.lines(20), 20);
    let again = site.replica_with("again", &until, &[]);
    assert_eq!(again.exit_code(), 0, "{}", again.log());
    let waiting = site.model("select count(accepted) from projector.checkpoints");
    assert_eq!(waiting, "0");
}

#[test]
fn an_acceptance_that_stands_is_neither_given_nor_audited_twice() {
    let site = Site::shared(programs(), Databases::One, QUICK);
    let leader = site.leader("a");
    site.begun();
    leader.stop();
    let audited = "select count(*) from projector.audit where action = 'resume'";
    let row = "select accepted, revision, updated_at from projector.checkpoints where projection = 'order'";
    for (number, what) in [("1", "plugin"), ("2", "store")] {
        let option = format!("--accept-{what}");
        let first = site.runs(&["resume", "order", &option]);
        assert!(first.contains("goes on"), "{first}");
        let before = site.model(row);
        let second = site.runs(&["resume", "order", &option]);
        assert!(
            second.contains("nothing changed") && !second.contains("goes on"),
            "{second}"
        );
        assert_eq!(site.model(row), before);
        assert_eq!(site.model(audited), number, "{what}");
    }
    // A pause in between is cleared, and what was accepted stands.
    site.runs(&["pause", "order"]);
    let third = site.runs(&["resume", "order", "--accept-store"]);
    assert!(third.contains("goes on"), "{third}");
    assert_eq!(site.model(audited), "3");
}
