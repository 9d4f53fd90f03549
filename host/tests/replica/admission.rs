//! Projections that must not simply go on: another plugin made the rows, or the store is not the one that was read.

use projector_testkit::domain::{Generator, PROJECTIONS};
use projector_testkit::site::{Databases, QUICK, Site};
use serde_json::Value;

use crate::support::programs;

/// Waits until a projection is stopped for this reason, and stays so beside others that run.
fn is_stopped(site: &Site, name: &str, category: &str) -> Value {
    site.eventually("the projection is stopped", || {
        let status = site.status_of(name);
        (status["state"] == "stopped" && status["failure"]["category"] == category)
            .then_some(status)
    })
}

#[test]
fn a_store_that_went_back_stops_those_that_scanned_what_is_gone_until_it_is_accepted() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let mut generator = Generator::new(31);
    let leader = site.leader("a");
    site.append(&generator.lines(200), 50);
    site.all_is_right_at_the_head();
    leader.stop();
    // What a restore does that lost the newest event, whose number then went to another one.
    site.store("alter table event_store.events disable trigger all");
    site.store(
        "update event_store.events set id = gen_random_uuid() where position = \
         (select max(position) from event_store.events)",
    );
    site.store("alter table event_store.events enable trigger all");
    let _leader = site.leader("b");
    for name in PROJECTIONS {
        let status = is_stopped(&site, name, "store-changed");
        let message = status["failure"]["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("PH0804") && message.contains("position 200"),
            "{status}"
        );
    }
    site.runs(&["resume", "order"]);
    is_stopped(&site, "order", "store-changed");
    site.append(&generator.lines(50), 50);
    for name in PROJECTIONS {
        assert_eq!(
            site.status_of(name)["position"],
            200,
            "nothing is applied meanwhile"
        );
        site.runs(&["resume", name, "--accept-store"]);
    }
    site.all_is_right_at_the_head();
}

#[test]
fn another_plugin_does_not_go_on_with_the_rows_until_it_is_accepted() {
    let site = Site::shared(programs(), Databases::One, QUICK);
    let mut generator = Generator::new(32);
    let leader = site.leader("a");
    site.append(&generator.lines(100), 50);
    site.all_is_right_at_the_head();
    leader.stop();
    site.model(
        "update projector.generations set sha256 = repeat('0', 64) where projection = 'order'",
    );
    let _leader = site.leader("b");
    let status = is_stopped(&site, "order", "plugin-changed");
    let message = status["failure"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("PH0802") && message.contains("--accept-plugin"),
        "{status}"
    );
    site.append(&generator.lines(50), 50);
    site.runs(&["wait", "scheduling", "service-request", "--until-caught-up"]);
    assert_eq!(
        site.status_of("order")["position"],
        100,
        "nothing is applied meanwhile"
    );
    site.runs(&["resume", "order"]);
    is_stopped(&site, "order", "plugin-changed");
    site.runs(&["resume", "order", "--accept-plugin"]);
    site.all_is_right_at_the_head();
    assert_ne!(site.status_of("order")["plugin"]["sha256"], "0".repeat(64));
}
