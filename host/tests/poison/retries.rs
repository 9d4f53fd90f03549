//! Trying dead letters again: in order, through the plugin as it is, without being overtaken.

use std::sync::atomic::{AtomicBool, Ordering};

use projector_testkit::site::{Databases, Site};
use serde_json::{Value, json};

use crate::support::{
    BY_TYPE, caught_up, letters, line, numbers, order, site, site_by_type, typed,
};

const PARK: &str = "[defaults]\non_error = \"park\"";

/// As long as this stands, an order of 66,600 cents cannot be written.
const FORBID: &str = "alter table order_g1.orders add constraint no_such_amount check (amount_cents <> 66600) not valid";
const ALLOW: &str = "alter table order_g1.orders drop constraint no_such_amount";

/// Ends a thread with the scope that waits for it.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn amount(number: usize, amount: i64) -> String {
    order(number, "pending").replace(
        "\"amount_cents\":100",
        &format!("\"amount_cents\":{amount}"),
    )
}

fn status(number: usize, word: &str) -> String {
    let uuid = format!("eeeeeeee-0000-4000-8000-{number:012}");
    let data = json!({
        "merchant_id": "dddddddd-0000-4000-8000-00000000000a", "order_uuid": uuid, "status": word,
        "updated_at": "2026-03-02T08:30:00Z",
    });
    line(&format!("order-{uuid}"), "OrderStatusChanged", &data)
}

fn open(site: &Site) -> Vec<i64> {
    numbers(&letters(site, "order"), "id")
}

#[test]
fn a_parked_stream_is_driven_through_in_order_and_released() {
    let site = site(Databases::Two, PARK);
    let _leader = site.leader("a");
    site.model(FORBID);
    site.append(
        &(amount(1, 66_600) + &amount(2, 100) + &status(1, "confirmed")),
        500,
    );
    site.append(&(status(2, "confirmed") + &status(1, "completed")), 500);
    site.all_is_right_at_the_head();
    let found = letters(&site, "order");
    assert_eq!(numbers(&found, "position"), [1, 3, 5]);
    assert_eq!(
        (&found[0]["category"], &found[0]["table"]),
        (&json!("constraint"), &json!("orders"))
    );
    let ids: Vec<String> = open(&site).iter().map(i64::to_string).collect();
    // Not past the first one.
    let second = site.run(&["dead-letter", "retry", &ids[1]]);
    assert!(
        second.code == 1 && second.error.contains("PH0812"),
        "{second:?}"
    );
    let hole = site.run(&["dead-letter", "retry", &ids[0], &ids[2]]);
    assert_eq!(hole.code, 1, "{hole:?}");
    // The cause is still there.
    let failed = site.run(&["dead-letter", "retry", &ids[0], &ids[1], "--wait"]);
    assert!(
        failed.code == 1 && failed.error.contains("PH0813"),
        "{failed:?}"
    );
    let waiting = site.model("select count(retry_at) from projector.dead_letters");
    assert_eq!(waiting, "0", "the one behind does not overtake");
    site.model(ALLOW);
    let one = site.runs(&["dead-letter", "retry", &ids[0], "--wait"]);
    assert!(one.contains("passed"), "{one}");
    assert_eq!(open(&site).len(), 2);
    assert_eq!(site.status_of("order")["parked_streams"], 1);
    let rest = site.runs(&[
        "dead-letter",
        "retry",
        &ids[1],
        "--following",
        "--wait",
        "-o",
        "json",
    ]);
    let rest: Value = serde_json::from_str(&rest).expect("JSON");
    assert_eq!(
        rest["dead_letters"][0]["resolved"]["how"], "retried",
        "{rest}"
    );
    assert_eq!(site.status_of("order")["parked_streams"], 0);
    site.append(&status(1, "cancelled"), 500);
    site.all_is_right_at_the_head();
    assert!(open(&site).is_empty());
    let again = site.runs(&["dead-letter", "retry", &ids[0]]);
    assert!(again.contains("before"), "{again}");
    let stands = site.model("select status from read_model.orders where amount_cents = 66600");
    assert_eq!(stands, "cancelled");
}

#[test]
fn events_that_arrive_while_a_stream_is_driven_through_do_not_overtake() {
    let site = site(Databases::One, PARK);
    let _leader = site.leader("a");
    for round in 0..3_usize {
        site.model(FORBID);
        site.append(&amount(round, 66_600), 500);
        caught_up(&site, "order");
        assert_eq!(site.status_of("order")["parked_streams"], 1);
        site.model(ALLOW);
        while_events_arrive(&site, round, || {
            for _ in 0..5 {
                site.append(&status(round, "cancelled"), 1);
            }
            site.eventually("the stream flows again", || {
                let head = *open(&site).first()?;
                site.run(&[
                    "dead-letter",
                    "retry",
                    &head.to_string(),
                    "--following",
                    "--wait",
                ]);
                (site.status_of("order")["parked_streams"] == 0).then_some(())
            });
        });
        nothing_waits_in_vain(&site);
        // Whatever was overtaken would show: each row has the position of its last event, each change its log.
        site.all_is_right_at_the_head();
        assert!(open(&site).is_empty());
    }
}

#[test]
fn events_that_arrive_while_a_stream_is_released_by_discarding_do_not_overtake() {
    let site = site(Databases::One, PARK);
    let _leader = site.leader("a");
    for round in 0..4_usize {
        site.append(&order(round, "vanished"), 500);
        caught_up(&site, "order");
        while_events_arrive(&site, round, || {
            site.eventually("the stream flows again", || {
                let ids: Vec<String> = open(&site).iter().map(i64::to_string).collect();
                let mut command = vec!["dead-letter", "discard", "-y"];
                command.extend(ids.iter().map(String::as_str));
                if !ids.is_empty() {
                    site.runs(&command);
                }
                nothing_waits_in_vain(&site);
                (site.model("select count(*) from projector.parked_streams") == "0").then_some(())
            });
        });
        site.all_is_right_at_the_head();
        nothing_waits_in_vain(&site);
        assert!(open(&site).is_empty());
    }
}

/// Appends status changes of an order, one after the other, until this has ended.
fn while_events_arrive(site: &Site, round: usize, release: impl FnOnce()) {
    let words = [
        "pending",
        "confirmed",
        "dispatching",
        "in_service",
        "completed",
    ];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Also when this thread ends early.
        let _stopping = Stopping(&stop);
        scope.spawn(|| {
            for at in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                site.append(&status(round, words[at % words.len()]), 1);
            }
        });
        release();
    });
}

/// A letter that waits, and whose stream does not, would be overtaken.
fn nothing_waits_in_vain(site: &Site) {
    let vain = site.model(
        "select count(*) from projector.dead_letters d where d.resolved_at is null and d.parked and not exists
             (select from projector.parked_streams p
              where (p.projection, p.generation, p.stream) = (d.projection, d.generation, d.stream))",
    );
    assert_eq!(vain, "0");
}

#[test]
fn discarding_the_head_advances_it_and_the_last_one_releases_the_stream() {
    let site = site(Databases::Two, PARK);
    let leader = site.leader("a");
    site.append(
        &(order(1, "vanished") + &order(1, "pending") + &status(1, "confirmed")),
        500,
    );
    site.all_is_right_at_the_head();
    let ids: Vec<String> = open(&site).iter().map(i64::to_string).collect();
    let answer = site.run(&["dead-letter", "discard", &ids[0], "-y"]);
    assert!(
        answer.code == 0 && answer.error.contains("2 more"),
        "{answer:?}"
    );
    site.runs(&["dead-letter", "retry", &ids[1], "--wait"]);
    // With a batch of the stream under way, or not: it is the command's revision that decides.
    leader.stop();
    site.append(&status(1, "completed"), 500);
    site.runs(&["dead-letter", "discard", &ids[2], "-y"]);
    assert_eq!(
        site.model("select count(*) from projector.parked_streams"),
        "0"
    );
    let _next = site.leader("b");
    site.all_is_right_at_the_head();
    assert!(open(&site).is_empty());
    assert_eq!(
        site.model("select status from read_model.orders"),
        "completed"
    );
}

#[test]
fn each_request_has_the_whole_budget_and_a_pause_makes_it_wait() {
    let retry = "retry = { attempts_max = 3, initial = \"10ms\", max = \"20ms\" }";
    let (site, _folder) = site_by_type(&format!("{PARK}\n{retry}"));
    let leader = site.leader("a");
    site.append(&typed("one", &["Again", "Good"]), 500);
    caught_up(&site, BY_TYPE);
    let found = letters(&site, BY_TYPE);
    assert_eq!(numbers(&found, "attempts"), [3, 0]);
    let id = numbers(&found, "id")[0].to_string();
    let behind = numbers(&found, "id")[1].to_string();
    // While the first one has its pause, the one behind it is due, and must wait all the same.
    for more in ["--following", behind.as_str()] {
        let answer = site.run(&["dead-letter", "retry", &id, more, "--wait"]);
        assert!(
            answer.code == 1 && answer.error.contains("PH0813"),
            "{answer:?}"
        );
        let attempts = site.model(&format!(
            "select attempts, retry_attempts, retry_begun from projector.dead_letters where id = {id}"
        ));
        assert_eq!(attempts, "3|3|0");
    }
    site.runs(&["pause", BY_TYPE]);
    let paused = site.run(&["dead-letter", "retry", &id, "--wait"]);
    assert!(
        paused.code == 1 && paused.error.contains("paused"),
        "{paused:?}"
    );
    site.runs(&["resume", BY_TYPE]);
    site.eventually("it is tried then", || {
        (site.model("select count(retry_at) from projector.dead_letters") == "0").then_some(())
    });
    // Events of other streams were never held up.
    site.append(&typed("two", &["Good"]), 500);
    caught_up(&site, BY_TYPE);
    assert_eq!(site.model("select count(*) from read_model.events"), "1");
    // A request outlives its leader.
    leader.stop();
    site.runs(&["dead-letter", "retry", &id]);
    let _next = site.leader("b");
    site.eventually("the next leader tries it", || {
        (site.model("select count(retry_at) from projector.dead_letters") == "0").then_some(())
    });
}
