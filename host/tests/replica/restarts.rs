//! The server is not there, and comes. (`host/tests/faults/outages.rs` restarts it.)

use projector_testkit::Mode;
use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, QUICK, Site};

use crate::support::programs;

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
