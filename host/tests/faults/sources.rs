//! One replica reaches the read model, with the lock in it, but not the event store: it lets another one lead.

use std::time::Duration;

use projector_testkit::domain::Generator;
use projector_testkit::proxy::{Close, Link, Proxy, Silence};
use projector_testkit::site::{Databases, QUICK, Site};

use crate::support::*;

/// `resign_after_source_errors` here.
const RESIGN_AFTER: Duration = Duration::from_millis(1_500);

/// A statement without an answer is in doubt after 5 s, and the server counts as gone 5 s later.
const SILENCE_NOTICED_AFTER: Duration = Duration::from_secs(10);

fn hands_over_when(the_store_vanishes: impl Fn(&Proxy), noticed_after: Duration) {
    let leader = format!(
        "{QUICK}database = \"read_model\"\nresign_after_source_errors = \"{}ms\"\n",
        RESIGN_AFTER.as_millis()
    );
    let site = Site::shared(programs(), Databases::Two, &leader);
    let mut generator = Generator::new(191);
    let proxy = Proxy::before(site.urls().0, 191);
    let far = site.replica_with("far", &["run"], &[("ES_DATABASE_URL", proxy.url())]);
    far.leads_eventually();
    site.begun();
    let near = site.replica("near");
    near.stands_by_eventually();
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    let before = term(&site);

    the_store_vanishes(&proxy);
    let took = until(&site, "the other one leads", || near.leads());
    eprintln!("handed over after {took:?}");
    assert!(took >= RESIGN_AFTER, "too early: {took:?}");
    let bound = noticed_after + RESIGN_AFTER + SLACK * 2;
    assert!(took <= bound, "handed over after {took:?}");
    assert!(far.log().contains("could not be read for"), "{}", far.log());
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    assert_eq!(term(&site), before + 1, "nobody led in between");

    // It would be no better a leader now: it stays away while the other one is there.
    far.stands_by_eventually();
    assert!(near.leads() && far.code("/readyz") == 200);
    proxy.heal();
    proxy.retarget(site.urls().0);
    near.kill();
    far.leads_eventually();
    ends_well(&site, &mut generator, &[&far]);
}

#[test]
fn a_store_that_refuses_one_replica_makes_it_resign() {
    let refuses = |proxy: &Proxy| {
        // A port that nobody listens on.
        proxy.retarget("postgresql://127.0.0.1:1/none");
        proxy.close(Close::Reset);
    };
    hands_over_when(refuses, Duration::ZERO);
}

#[test]
fn a_store_that_one_replica_hears_nothing_of_makes_it_resign() {
    let vanishes = |proxy: &Proxy| proxy.link(Link::default().silent(Silence::Both));
    hands_over_when(vanishes, SILENCE_NOTICED_AFTER);
}
