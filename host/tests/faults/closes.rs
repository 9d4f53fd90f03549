//! Connections that end in every way, and networks that are slow: errors and delays, never a hang, never a wrong row.

use std::time::Duration;

use projector_testkit::domain::Generator;
use projector_testkit::proxy::{Close, Link, Proxy};
use projector_testkit::random::Random;

use crate::support::*;

#[test]
fn connections_are_reset_finished_and_half_closed_in_any_order() {
    const SEED: u64 = 71;
    const ROUNDS: usize = 12;
    eprintln!("seed {SEED}");
    let site = site();
    let mut random = Random::new(SEED);
    let mut generator = Generator::new(SEED);
    let proxy = Proxy::before(site.urls().0, SEED);
    let leader = leads_behind(&site, &proxy, "a");
    let ways = [
        Close::Reset,
        Close::Finish,
        Close::HalfToServer,
        Close::HalfToClient,
    ];
    let mut ended = 0;
    for round in 0..ROUNDS {
        let how = if round < ways.len() {
            ways[round]
        } else {
            *random.pick(&ways)
        };
        let delay = Duration::from_millis(random.below(200));
        proxy.link(Link::default().slow_close(delay));
        site.append(&generator.lines(40), 10);
        ended += proxy.close(how);
        let head = site.head();
        until(&site, "the projection goes on", || {
            site.position("order") >= head
        });
    }
    assert!(ended >= ROUNDS, "only {ended} connections were ended");
    proxy.heal();
    leader.leads_eventually();
    ends_well(&site, &mut generator, &[&leader]);
}

#[test]
fn latency_jitter_single_bytes_and_a_thin_line_make_nobody_step_down() {
    let site = site();
    let mut generator = Generator::new(72);
    let proxy = Proxy::before(site.urls().0, 72);
    let leader = leads_behind(&site, &proxy, "a");
    let before = term(&site);
    let ms = Duration::from_millis;
    for link in [
        Link::default().latency(ms(10), ms(30)),
        Link::default().slices(1),
        Link::default().bandwidth(100_000),
        Link::default()
            .latency(ms(1), ms(5))
            .slices(7)
            .bandwidth(400_000),
    ] {
        proxy.link(link.clone());
        site.append(&generator.lines(100), 25);
        site.all_is_right_at_the_head();
        assert!(leader.leads(), "{link:?}");
    }
    assert_eq!(term(&site), before, "nobody stepped down");
    proxy.heal();
    ends_well(&site, &mut generator, &[&leader]);
}
