//! The event store goes back: a restore of its files, and a crash that forgets commits.

use projector_testkit::domain::Generator;
use projector_testkit::site::{QUICK, Site};
use projector_testkit::{Mode, Server, ServerOptions};

use crate::support::*;

fn store(options: ServerOptions) -> Server {
    let server = Server::start(options).expect("a PostgreSQL server can be started");
    server
        .create_database("events")
        .expect("it takes databases");
    server
}

/// Projections that stand stopped because of the store.
fn stopped(site: &Site) -> Vec<String> {
    let names = site.model(
        "select projection from projector.checkpoints where state = 'stopped' and failure_category = 'store-changed' \
         and failure_message like '%PH0804%' order by 1",
    );
    names.lines().map(str::to_owned).collect()
}

/// Whose last event is beyond this position.
fn beyond(site: &Site, position: i64) -> Vec<String> {
    let names = site.model(&format!(
        "select projection from projector.checkpoints where last_event_position > {position} order by 1"
    ));
    names.lines().map(str::to_owned).collect()
}

/// The store went back to `kept`: what applied more is stopped, applies nothing new, and goes on when it is accepted.
fn stops_and_is_accepted(site: &Site, generator: &mut Generator, kept: i64) {
    let lost = beyond(site, kept);
    assert!(!lost.is_empty(), "nothing that was lost had been applied");
    until(site, "whoever applied lost events is stopped", || {
        stopped(site) == lost
    });
    let stood = |site: &Site| {
        site.model("select projection, position from projector.checkpoints order by 1")
    };
    let before = stood(site);
    // Other events take the positions of the lost ones.
    site.append(&generator.lines(60), 20);
    for name in projector_testkit::domain::PROJECTIONS {
        if !lost.iter().any(|one| one == name) {
            site.runs(&["wait", name, "--until-caught-up"]);
        }
    }
    for name in &lost {
        let line = |picture: &str| {
            let found = picture.lines().find(|line| line.starts_with(name.as_str()));
            found.map(str::to_owned)
        };
        assert_eq!(
            line(&before),
            line(&stood(site)),
            "{name} applied something"
        );
        site.runs(&["resume", name, "--accept-store"]);
    }
    site.wait();
    assert!(stopped(site).is_empty());
}

#[test]
fn a_store_that_was_restored_from_older_files_stops_what_had_gone_farther() {
    let server = store(ServerOptions::default());
    let site = Site::with_store(programs(), &server.url("events"), QUICK);
    let mut generator = Generator::new(131);
    let leader = site.leader("a");
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    server.stop(Mode::Fast).expect("it stops");
    server.save().expect("there is room");
    server.start_again().expect("it starts");
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    server.stop(Mode::Fast).expect("it stops");
    server.restore().expect("it was saved");
    server.start_again().expect("it starts");
    assert_eq!(site.head(), 60);
    stops_and_is_accepted(&site, &mut Generator::new(132), 60);
    leader.stop();
}

#[test]
fn a_crash_that_forgets_events_which_were_read_stops_what_had_applied_them() {
    const ATTEMPTS_MAX: usize = 5;
    let server = store(
        ServerOptions::default()
            .setting("synchronous_commit", "off")
            .setting("wal_writer_delay", "10s")
            .setting("checkpoint_timeout", "1h"),
    );
    let site = Site::with_store(programs(), &server.url("events"), QUICK);
    let mut generator = Generator::new(133);
    let leader = site.leader("a");
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    for _ in 0..ATTEMPTS_MAX {
        site.store("checkpoint");
        let kept = site.head();
        site.append(&generator.lines(20), 20);
        site.all_is_right_at_the_head();
        server.stop(Mode::Immediate).expect("it stops");
        server.start_again().expect("it starts");
        let head = site.head();
        if head == kept {
            stops_and_is_accepted(&site, &mut Generator::new(134), kept);
            leader.stop();
            return;
        }
        leader.leads_eventually();
    }
    panic!("no commit was forgotten in {ATTEMPTS_MAX} crashes: nothing was tested");
}

/// How a dump comes back under the name of the store.
struct Restore {
    /// Whether a replica leads meanwhile.
    running: bool,
    /// Events that nobody wants and that somebody wants, appended after the dump is back.
    after: (usize, usize),
    /// Where the lock lives.
    lock: &'static str,
}

/// Events that no projection wants.
fn foreign(count: usize) -> String {
    "{\"stream\":\"foreign-1\",\"type\":\"NobodyWantsThis\",\"data\":{}}\n".repeat(count)
}

/// A logical restore keeps names, system and timeline. What was lost was wanted by nobody, so no projection has
/// applied anything of it: it has only been scanned.
fn a_dump_comes_back(restore: &Restore) {
    let server = store(ServerOptions::default());
    let leases = format!("{QUICK}database = \"{}\"\n", restore.lock);
    let site = Site::with_store(programs(), &server.url("events"), &leases);
    let mut generator = Generator::new(135);
    let leader = site.leader("a");
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    leader.stop();
    server
        .create_database_from_template("dump", "events")
        .expect("nobody is connected");
    let leader = site.leader("a");
    site.append(&foreign(30), 30);
    site.wait();
    let running = restore.running.then_some(leader);
    let sql = |sql: &str| server.psql("postgres", sql).expect("it restores");
    sql("drop database events with (force)");
    sql("create database events template dump");
    assert_eq!(site.head(), 60);
    let (unwanted, wanted) = restore.after;
    if unwanted + wanted > 0 {
        site.append(&foreign(unwanted), 50);
        site.append(&generator.lines(wanted), 50);
    }
    if running.is_none() {
        let answer = site.run(&["run", "--until-caught-up", "--timeout", "60s"]);
        assert_ne!(answer.code, 0, "{answer:?}");
    }
    let _leader = match running {
        Some(leader) => leader,
        None => {
            let leader = site.replica("b");
            leader.leads_eventually();
            leader
        }
    };
    let names = beyond(&site, 0);
    until(&site, "all that scanned lost events are stopped", || {
        stopped(&site) == names
    });
    let answer = site.run(&["wait", "--until-caught-up", "--timeout", "10s"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    for name in &names {
        site.runs(&["resume", name, "--accept-store"]);
    }
    site.append(&generator.lines(10), 10);
    site.wait();
    assert!(stopped(&site).is_empty());
}

#[test]
fn a_dump_that_comes_back_stops_whoever_scanned_more_also_when_it_wanted_nothing_of_it() {
    for running in [true, false] {
        for after in [(0, 0), (0, 40), (200, 5)] {
            a_dump_comes_back(&Restore {
                running,
                after,
                lock: "event_store",
            });
        }
    }
}

#[test]
fn a_dump_that_comes_back_under_a_leader_whose_lock_lives_elsewhere_is_noticed() {
    for after in [(0, 40), (200, 5)] {
        a_dump_comes_back(&Restore {
            running: true,
            after,
            lock: "read_model",
        });
    }
}
