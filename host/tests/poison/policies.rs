//! The policies: what becomes of a bad event, of those behind it, and what it costs.

use projector_testkit::domain::Generator;
use projector_testkit::site::Databases;
use serde_json::json;

use crate::support::{
    BY_TYPE, calls, caught_up, letters, line, numbers, order, orders, site, site_by_type, typed,
};

const SKIP: &str = "[defaults]\non_error = \"skip\"";
const PARK: &str = "[defaults]\non_error = \"park\"";

#[test]
fn one_bad_event_among_500_is_passed_over_with_few_calls() {
    let site = site(Databases::Two, SKIP);
    site.append(&orders(500, |at| at == 321), 500);
    let leader = site.leader("a");
    site.all_is_right_at_the_head();
    let found = letters(&site, "order");
    assert_eq!(numbers(&found, "position"), [322], "{found:?}");
    let letter = &found[0];
    assert_eq!(letter["category"], "rejected", "{letter}");
    assert_eq!(letter["event_type"], "OrderCreated", "{letter}");
    assert_eq!(
        (&letter["parked"], &letter["attempts"]),
        (&json!(false), &json!(1))
    );
    assert!(
        letter["message"]
            .as_str()
            .unwrap_or_default()
            .contains("vanished"),
        "{letter}"
    );
    let logs = site.model("select count(*) from read_model.orders");
    assert_eq!(logs, "499");
    // The batch, what stands before the named event, it alone, and growing stretches behind it.
    let calls = calls(&leader, "order");
    assert!((4..=8).contains(&calls), "{calls}");
    let status = site.status_of("order");
    assert_eq!(
        (&status["dead_letters"], &status["parked_streams"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(status["failure"], json!(null));
    site.eventually("metrics count it", || {
        (leader.metric("projector_dead_letters") == Some(1.0)).then_some(())
    });
}

#[test]
fn an_event_that_nobody_names_is_found_by_halving() {
    let (site, _folder) = site_by_type(SKIP);
    let mut events = typed("quiet", &["Good"; 200]);
    events += &typed("loud", &["Trap"]);
    events += &typed("quiet", &["Good"; 299]);
    site.append(&events, 500);
    let leader = site.leader("a");
    caught_up(&site, BY_TYPE);
    let found = letters(&site, BY_TYPE);
    assert_eq!(numbers(&found, "position"), [201]);
    assert_eq!(found[0]["category"], "trap", "{found:?}");
    assert_eq!(site.model("select count(*) from read_model.events"), "499");
    // 1 for the batch, 2 for each of the nine times that it is halved.
    let calls = calls(&leader, BY_TYPE);
    assert!((10..=20).contains(&calls), "{calls}");
}

#[test]
fn one_bad_event_in_ten_costs_what_stands_between_two_of_them() {
    let (site, _folder) = site_by_type(SKIP);
    let mut events = orders(1_000, |at| at % 10 == 7);
    for at in 0..1_000 {
        let event_type = if at % 10 == 7 { "Unnamed" } else { "Good" };
        events += &typed("mixed", &[event_type]);
    }
    site.append(&events, 500);
    let begun = std::time::Instant::now();
    let leader = site.leader("a");
    site.all_is_right_at_the_head();
    caught_up(&site, BY_TYPE);
    assert_eq!(letters(&site, "order").len(), 100);
    assert_eq!(letters(&site, BY_TYPE).len(), 100);
    let (named, unnamed) = (calls(&leader, "order"), calls(&leader, BY_TYPE));
    println!(
        "1,000 events, 100 bad: {named} calls named, {unnamed} calls unnamed, {:?}",
        begun.elapsed()
    );
    // Three for each one that is named, and about nine where it has to be looked for.
    assert!(named < 500, "{named}");
    assert!(unnamed < 1_400, "{unnamed}");
}

#[test]
fn a_parked_stream_waits_in_order_while_the_others_flow_also_under_the_next_leader() {
    let site = site(Databases::Two, PARK);
    let first = site.leader("first");
    let mut generator = Generator::new(71);
    let stream = "order-eeeeeeee-0000-4000-8000-000000000007";
    let later = |note: &str| line(stream, "OrderNoted", &json!({ "note": note }));
    site.append(
        &(generator.lines(40) + &order(7, "vanished") + &generator.lines(40)),
        500,
    );
    site.append(&(later("one") + &generator.lines(20) + &later("two")), 500);
    site.all_is_right_at_the_head();
    let types: Vec<_> = letters(&site, "order");
    // The plugin does not want a type that it does not know.
    assert_eq!(numbers(&types, "position"), [41]);
    site.append(
        &(order(7, "pending") + &generator.lines(10) + &order(7, "confirmed")),
        500,
    );
    site.all_is_right_at_the_head();
    let found = letters(&site, "order");
    assert_eq!(numbers(&found, "position"), [41, 104, 115], "{found:?}");
    assert_eq!(found[0]["category"], "rejected");
    assert_eq!(found[1]["category"], "waiting");
    assert_eq!(
        (&found[0]["first_of_stream"], &found[0]["behind"]),
        (&json!(true), &json!(2))
    );
    assert_eq!(site.status_of("order")["parked_streams"], 1);
    assert_eq!(
        site.model("select stream from projector.parked_streams"),
        stream
    );
    first.kill();
    let next = site.leader("next");
    site.append(&(order(7, "paid") + &generator.lines(10)), 500);
    site.all_is_right_at_the_head();
    assert_eq!(numbers(&letters(&site, "order"), "position").len(), 4);
    site.eventually("the probe tells them", || {
        let (_, body) = next.get("/readyz")?;
        body.contains("\"dead_letters\":4,\"parked_streams\":1")
            .then_some(())
    });
}

#[test]
fn a_stream_stays_parked_when_the_policy_changes() {
    let site = site(Databases::One, PARK);
    let first = site.leader("first");
    site.append(&(order(1, "vanished") + &order(2, "pending")), 500);
    site.all_is_right_at_the_head();
    first.stop();
    site.configure(|text| text.replace("\"park\"", "\"stop\""));
    let _next = site.leader("next");
    site.append(&(order(1, "pending") + &order(3, "pending")), 500);
    site.all_is_right_at_the_head();
    assert_eq!(numbers(&letters(&site, "order"), "position"), [1, 3]);
    site.append(&order(4, "vanished"), 500);
    site.eventually("it stops at the next bad one", || {
        (site.status_of("order")["state"] == "stopped").then_some(())
    });
}

#[test]
fn a_counted_failure_is_tried_again_and_then_the_policy_decides() {
    let retry = "retry = { attempts_max = 3, initial = \"10ms\", max = \"50ms\" }";
    let (site, _folder) = site_by_type(&format!("{SKIP}\n{retry}"));
    let leader = site.leader("a");
    site.append(&typed("one", &["Good", "Again", "Good"]), 500);
    caught_up(&site, BY_TYPE);
    let found = letters(&site, BY_TYPE);
    assert_eq!(numbers(&found, "attempts"), [3], "{found:?}");
    assert_eq!(found[0]["category"], "retry");
    assert_eq!(site.model("select count(*) from read_model.events"), "2");
    assert!(leader.log().contains("trying again"));
    let left =
        site.model("select attempts from projector.checkpoints where projection = 'by-type'");
    assert_eq!(left, "0", "attempts are written only while isolating");
}

#[test]
fn fatal_stops_at_its_event_behind_what_passed_whatever_the_size_of_batches() {
    for (fatal, batch) in [("Fatal", 1), ("Fatal", 500), ("Ends", 7), ("Ends", 500)] {
        let (site, _folder) = site_by_type(SKIP);
        site.configure(|text| {
            text.replace(
                "[event_store]\n",
                &format!("[event_store]\nbatch_events_max = {batch}\n"),
            )
        });
        let types = ["Good", "Rejected", "Good", "Good", fatal, "Good"];
        site.append(&typed("one", &types), 500);
        let _leader = site.leader("a");
        let failure = site.eventually("the projection stops", || {
            let status = site.status_of(BY_TYPE);
            (status["state"] == "stopped").then(|| status["failure"].clone())
        });
        assert_eq!(failure["position"], 5, "{fatal} in {batch}: {failure}");
        assert_eq!(failure["category"], "fatal");
        let count = || site.model("select count(*) from read_model.events");
        assert_eq!(count(), "3", "{fatal} in {batch}");
        site.runs(&["skip", BY_TYPE, "--position", "5"]);
        caught_up(&site, BY_TYPE);
        assert_eq!(count(), "4", "{fatal} in {batch}");
        assert_eq!(numbers(&letters(&site, BY_TYPE), "position"), [2, 5]);
    }
}

#[test]
fn an_event_that_is_tried_again_is_seen() {
    let retry = "retry = { attempts_max = 10, initial = \"20s\", max = \"30s\" }";
    let (site, _folder) = site_by_type(&format!("{SKIP}\n{retry}"));
    let leader = site.leader("a");
    site.append(&typed("one", &["Good", "Again"]), 500);
    site.eventually("status and probe tell that it is tried again", || {
        let (_, body) = leader.get("/readyz")?;
        let detail: serde_json::Value = serde_json::from_str(&body).ok()?;
        let known = detail["projections"].as_array()?;
        let own = known.iter().find(|one| one["name"] == BY_TYPE)?;
        let seen = own["state"] == "retrying" && own["last_error"]["message"].is_string();
        (seen && site.status_of(BY_TYPE)["state"] == "retrying").then_some(())
    });
}

#[test]
fn batches_that_need_more_than_a_call_may_have_become_smaller_and_stay_so() {
    const EVENTS: usize = 12_000;
    // Enough for some hundred of these events, not for a thousand.
    let site = site(Databases::One, "[plugins.limits]\nfuel_max = 20000000");
    site.append(&orders(EVENTS, |_| false), 1_000);
    let leader = site.leader("a");
    site.all_is_right_at_the_head();
    let failed =
        leader.metric("projector_guest_calls_total{projection=\"order\",outcome=\"fuel\"}");
    let failed = failed.unwrap_or_default();
    assert!((1.0..=6.0).contains(&failed), "{failed}");
    assert_eq!(letters(&site, "order").len(), 0, "no event is to blame");
}
