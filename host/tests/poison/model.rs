//! Whatever the size of batches and wherever processes die: the same rows and the same dead letters.

use projector_testkit::domain::Generator;
use projector_testkit::random::Random;
use projector_testkit::site::{Databases, Site};
use serde_json::Value;

use crate::support::{letters, site};

const EVENTS: usize = 300;

/// Odd events, of which some are bad.
fn events(seed: u64) -> String {
    let (mut generator, mut random) = (Generator::new(seed), Random::new(seed + 1));
    let mut lines = String::new();
    for _ in 0..EVENTS {
        let mut line: Value = serde_json::from_str(&generator.line()).expect("a line");
        if line["data"]["status"].is_string() && random.percent(8) {
            line["data"]["status"] = "vanished".into();
        }
        lines += &format!("{line}\n");
    }
    lines
}

/// Position, category and policy of every letter of every projection.
fn buried(site: &Site) -> Vec<String> {
    let mut all = Vec::new();
    for projection in ["order", "scheduling", "service-request"] {
        for letter in letters(site, projection) {
            all.push(format!(
                "{projection} {} {} {} {}",
                letter["position"], letter["category"], letter["parked"], letter["stream"]
            ));
        }
    }
    all
}

fn run(lines: &str, policy: &str, batch: usize, deaths: usize, random: &mut Random) -> Vec<String> {
    let databases = if batch == 7 {
        Databases::Two
    } else {
        Databases::One
    };
    let site = site(databases, &format!("[defaults]\non_error = \"{policy}\""));
    site.configure(|text| {
        text.replace(
            "[event_store]\n",
            &format!("[event_store]\nbatch_events_max = {batch}\n"),
        )
    });
    site.append(lines, 500);
    for death in 0..deaths {
        let replica = site.leader(&format!("life-{death}"));
        let from = site.position("order");
        let upto = from + 1 + i64::try_from(random.below(60)).unwrap_or(0);
        site.eventually("it has come some way", || {
            (site.position("order") >= upto.min(site.head())).then_some(())
        });
        replica.kill();
        site.rows_are_right();
    }
    let _last = site.leader("last");
    site.all_is_right_at_the_head();
    buried(&site)
}

fn check(policy: &str, seed: u64) {
    let lines = events(seed);
    let mut random = Random::new(seed + 2);
    let expected = run(&lines, policy, 500, 0, &mut random);
    assert!(
        expected.len() > 10,
        "the events hold bad ones: {expected:?}"
    );
    for (batch, deaths) in [(500, 2), (7, 3), (1, 3)] {
        let found = run(&lines, policy, batch, deaths, &mut random);
        assert_eq!(found, expected, "seed {seed}, {policy}, batches of {batch}");
    }
}

#[test]
fn with_skip_rows_and_letters_depend_neither_on_batches_nor_on_deaths() {
    check("skip", 81);
}

#[test]
fn with_park_rows_and_letters_depend_neither_on_batches_nor_on_deaths() {
    check("park", 82);
}
