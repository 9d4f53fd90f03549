//! Notifications that never come, and notifications without end.

use std::time::{Duration, Instant};

use projector_testkit::domain::Generator;

use crate::support::*;

/// `poll_interval` of a site.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[test]
fn without_notifications_polling_is_enough() {
    let site = site();
    let mut generator = Generator::new(111);
    let leader = site.leader("a");
    site.store("alter table event_store.events disable trigger all");
    for _ in 0..5 {
        site.append(&generator.lines(10), 10);
        let head = site.head();
        let lag = until(&site, "the events are applied", || {
            site.position("order") >= head
        });
        assert!(lag <= POLL_INTERVAL + SLACK, "after {lag:?}");
    }
    ends_well(&site, &mut generator, &[&leader]);
}

#[test]
fn a_storm_of_notifications_makes_passes_coalesce_and_fills_no_queue() {
    const STORM: Duration = Duration::from_secs(4);
    const CHANNEL: &str = "projector_events_event_store";
    let site = site();
    let mut generator = Generator::new(112);
    let leader = site.leader("a");
    until(&site, "it listens", || {
        leader.metric("projector_listening") == Some(1.0)
    });
    let before = term(&site);
    let begun = Instant::now();
    let cpu = cpu_time(&leader);
    let mut sent = 0_u64;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = site.session();
            while begun.elapsed() < STORM {
                // Different payloads: equal ones of a transaction are sent once.
                session.run(&format!(
                    "select count(pg_notify('{CHANNEL}', n::text)) from generate_series(1, 5000) n"
                ));
                sent += 5_000;
            }
        });
        while begun.elapsed() < STORM {
            site.append(&generator.lines(10), 10);
            let head = site.head();
            until(&site, "events are applied during the storm", || {
                site.position("order") >= head
            });
            let usage = site.store("select pg_notification_queue_usage() < 0.01");
            assert_eq!(usage, "t", "the queue fills");
        }
    });
    let used = cpu_time(&leader).saturating_sub(cpu);
    eprintln!(
        "{sent} notifications, {used:?} of processor time in {:?}",
        begun.elapsed()
    );
    assert!(sent >= 20_000, "only {sent} were sent");
    assert!(
        used <= begun.elapsed(),
        "{used:?} of processor time: more than one processor"
    );
    assert_eq!(term(&site), before, "nobody stepped down");
    ends_well(&site, &mut generator, &[&leader]);
}

/// Processor time of a replica so far.
fn cpu_time(replica: &projector_testkit::site::Replica<'_>) -> Duration {
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", replica.pid()))
        .expect("the process is there");
    let fields = stat.rsplit(')').next().unwrap_or_default();
    // User and system time are the fields 14 and 15; the third one follows the name.
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
}
