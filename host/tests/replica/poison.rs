//! An event that cannot pass: it alone is blamed, nothing of it is written, and the others go on.

use projector_testkit::domain::{Generator, fold};
use projector_testkit::site::{Databases, QUICK, Site};
use serde_json::{Value, json};

use crate::support::programs;

const MERCHANT: &str = "dddddddd-0000-4000-8000-00000000000a";

fn order(uuid: &str, status: &str, amount: i64) -> String {
    let line = json!({ "stream": format!("order-{uuid}"), "type": "OrderCreated", "data": {
        "merchant_id": MERCHANT, "order_uuid": uuid, "status": status, "settlement_status": "unsettled",
        "amount_cents": amount, "inserted_at": "2026-03-01T08:30:00Z", "updated_at": "2026-03-01T08:30:00Z",
    }});
    format!("{line}\n")
}

fn uuid(number: u32) -> String {
    format!("eeeeeeee-0000-4000-8000-{number:012}")
}

/// Appends good events, a bad one, and good ones in one batch; wants the bad one blamed.
fn is_blamed(site: &Site, bad: &str, projection: &str) -> Value {
    site.begun();
    let mut generator = Generator::new(61);
    let before = site.head();
    site.append(&(generator.lines(40) + bad + &generator.lines(60)), 500);
    let position = before + 41;
    let status = site.eventually("the projection is stopped", || {
        let status = site.status_of(projection);
        (status["state"] == "stopped").then_some(status)
    });
    assert_eq!(status["failure"]["position"], position, "{status}");
    // Events of other projections between its last one and the bad one need not have been scanned.
    let reached = status["position"].as_i64().unwrap_or(i64::MAX);
    assert!(reached < position, "nothing passes the bad event: {status}");
    let rows = |upto| format!("{:?}", fold(projection, &site.events(), upto));
    assert!(
        rows(reached) == rows(position - 1),
        "everything before it was applied: {status}"
    );
    let bad: Value = serde_json::from_str(bad).expect("it is one line");
    assert_eq!(status["failure"]["event_type"], bad["type"], "{status}");
    for other in ["order", "scheduling", "service-request"]
        .into_iter()
        .filter(|name| *name != projection)
    {
        site.runs(&["wait", other, "--until-caught-up"]);
    }
    site.rows_are_right();
    let answer = site.run(&["wait", "--until-caught-up", "--timeout", "20s"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.error.contains(projection), "{answer:?}");
    status
}

/// A leader after it meets the same end.
fn stays_stopped(site: &Site, before: &Value, projection: &str) {
    let next = site.leader("after");
    next.logs("stays stopped");
    let status = site.eventually("status says that it is stopped", || {
        let status = site.status_of(projection);
        (status["state"] == "stopped").then_some(status)
    });
    assert_eq!(status["failure"], before["failure"], "{status}");
    assert_eq!(status["position"], before["position"], "{status}");
    site.append(&Generator::new(62).lines(30), 30);
    let answer = site.replica_with(
        "until",
        &["run", "--until-caught-up", "--timeout", "20s"],
        &[],
    );
    assert_eq!(answer.exit_code(), 1, "{}", answer.log());
    site.rows_are_right();
}

#[test]
fn an_unknown_status_word_stops_its_projection_alone() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let leader = site.leader("a");
    let status = is_blamed(&site, &order(&uuid(1), "vanished", 100), "order");
    assert_eq!(status["failure"]["category"], "rejected", "{status}");
    let message = status["failure"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("vanished") && message.contains("status"),
        "{status}"
    );
    let logs = format!("select count(*) from read_model.orders where merchant_id = '{MERCHANT}'");
    assert_eq!(site.model(&logs), "0", "nothing of it was written");
    leader.stop();
    stays_stopped(&site, &status, "order");
}

#[test]
fn a_total_beyond_64_bits_stops_its_projection_alone() {
    let site = Site::shared(programs(), Databases::One, QUICK);
    let leader = site.leader("a");
    site.append(
        &(order(&uuid(1), "pending", i64::MAX) + &order(&uuid(2), "confirmed", i64::MAX)),
        500,
    );
    site.all_is_right_at_the_head();
    let status = is_blamed(&site, &order(&uuid(3), "pending", 1), "order");
    let logs = format!(
        "select count(*) from read_model.order_change_logs where merchant_id = '{MERCHANT}'"
    );
    assert_eq!(
        site.model(&logs),
        "2",
        "the log of the bad event went with it: {status}"
    );
    let message = status["failure"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("order_totals") && message.contains("amount_cents"),
        "{status}"
    );
    leader.stop();
    stays_stopped(&site, &status, "order");
}

#[test]
fn a_missing_field_of_a_schedule_leaves_the_orders_alone() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let _leader = site.leader("a");
    let bad = json!({ "stream": "schedule-x", "type": "ScheduleDeleted", "data": { "merchant_id": MERCHANT, "order_id": uuid(1) } });
    let status = is_blamed(&site, &format!("{bad}\n"), "scheduling");
    let message = status["failure"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("deleted_at"), "{status}");
}
