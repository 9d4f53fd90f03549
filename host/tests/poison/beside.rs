//! Side by side: a plugin that traps, works for long or wants all memory does not hold up the others.

use std::time::{Duration, Instant};

use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, Site};

use crate::support::{BY_TYPE, caught_up, letters, order, site, site_by_type, typed};

/// Events of the good projections in one measurement.
const EVENTS: usize = 2_000;

/// A projection may cost the others its share of two processors and a good deal of noise, but no more. One that held
/// them up would cost them twenty times as much.
const RATIO_MAX: f64 = 5.0;

const CONFIG: &str = "[defaults]\non_error = \"skip\"\n[plugins.limits]\nfuel_max = 900000000000\n\
    call_timeout = \"60s\"\n[[projection]]\nname = \"by-type\"\nretry = { attempts_max = 1 }";

/// How long `order` takes for new events.
fn time(site: &Site, generator: &mut Generator) -> Duration {
    let lines = generator.lines(EVENTS);
    let begun = Instant::now();
    site.append(&lines, 500);
    caught_up(site, "order");
    begun.elapsed()
}

#[test]
fn a_bad_neighbour_costs_no_more_than_its_share_of_the_processor() {
    let (site, _folder) = site_by_type(CONFIG);
    let _leader = site.leader("a");
    let mut generator = Generator::new(91);
    time(&site, &mut generator);
    caught_up(&site, BY_TYPE);
    for (what, event_type, count) in [
        ("works for long", "Works", 40),
        ("traps", "Trap", 500),
        ("wants all memory", "Memory", 100),
    ] {
        let mut best = f64::INFINITY;
        let mut behind = false;
        for _ in 0..3 {
            let alone = time(&site, &mut generator);
            caught_up(&site, BY_TYPE);
            site.append(&typed("loud", &vec![event_type; count]), 500);
            let beside = time(&site, &mut generator);
            behind |= site.position(BY_TYPE) < site.position("order");
            let ratio = beside.as_secs_f64() / alone.as_secs_f64();
            println!("beside one that {what}: {beside:?}, alone {alone:?}, ratio {ratio:.2}");
            best = best.min(ratio);
            caught_up(&site, BY_TYPE);
        }
        assert!(
            best < RATIO_MAX,
            "one that {what} holds the others up: {best:.2}"
        );
        if event_type == "Works" {
            assert!(
                behind,
                "the slow one was still at work when the others had ended"
            );
        }
    }
    assert_eq!(letters(&site, BY_TYPE).len(), 3 * (500 + 100));
    site.rows_are_right();
}

#[test]
fn a_projection_that_wants_nothing_of_what_comes_keeps_up() {
    let site = site(Databases::Two, "");
    let _leader = site.leader("a");
    for number in 0..3 {
        site.append(&order(number, "pending"), 1);
        // All three, of which two want no orders.
        site.all_is_right_at_the_head();
    }
}
