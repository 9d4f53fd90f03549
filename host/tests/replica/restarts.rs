//! The server goes and comes back.

use projector_testkit::Mode;
use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, QUICK, Replica, Site};

use crate::support::programs;

#[test]
fn after_every_restart_of_the_server_one_replica_leads_and_rows_are_right() {
    let site = Site::own_server(programs(), Databases::Two, QUICK);
    let replicas = [site.replica("a"), site.replica("b")];
    let mut generator = Generator::new(41);
    for mode in [Mode::Fast, Mode::Immediate, Mode::Fast, Mode::Immediate] {
        site.append(&generator.lines(100), 20);
        let leader = site.eventually("somebody leads", || {
            replicas.iter().find(|replica| replica.leads())
        });
        let changes = changes(&replicas);
        site.server().restart(mode).expect("the server comes back");
        site.eventually("a new term", || {
            (self::changes(&replicas) > changes).then_some(())
        });
        site.all_is_right_at_the_head();
        let leaders: Vec<&str> = replicas
            .iter()
            .filter(|replica| replica.leads())
            .map(Replica::node)
            .collect();
        assert_eq!(
            leaders.len(),
            1,
            "{leaders:?} lead after {mode:?}; before, {} did",
            leader.node()
        );
    }
    for replica in &replicas {
        replica.stop();
    }
    site.eventually("no session and no lock is left", || {
        (site.remains() == (0, 0)).then_some(())
    });
}

/// How often any of them began to lead.
fn changes(replicas: &[Replica<'_>]) -> u64 {
    let counts = replicas
        .iter()
        .filter_map(|replica| replica.metric("projector_leader_changes_total"));
    counts.sum::<f64>() as u64
}

#[test]
fn without_a_server_a_replica_lives_is_not_ready_and_recovers() {
    let site = Site::own_server(programs(), Databases::One, QUICK);
    site.append(&Generator::new(42).lines(50), 50);
    site.server().stop(Mode::Fast).expect("it stops");
    let replica = site.replica("early");
    replica.logs("cannot start yet");
    assert_eq!(replica.code("/livez"), 200);
    assert_eq!(replica.code("/readyz"), 503);
    assert_eq!(replica.code("/leaderz"), 503);
    assert_eq!(site.run(&["status"]).code, 69);
    site.server().start_again().expect("it starts");
    replica.leads_eventually();
    assert_eq!(replica.code("/readyz"), 200);
    site.all_is_right_at_the_head();

    site.server().stop(Mode::Fast).expect("it stops");
    site.eventually("it leads no more", || {
        (replica.role() == "follower").then_some(())
    });
    assert_eq!(
        replica.code("/livez"),
        200,
        "an outage is no reason to be restarted"
    );
    site.server().start_again().expect("it starts");
    replica.leads_eventually();
    site.append(&Generator::new(43).lines(50), 50);
    site.all_is_right_at_the_head();
    replica.stop();
}
