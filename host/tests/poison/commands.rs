//! `skip` and `dead-letter` as people and scripts use them.

use projector_testkit::site::Databases;
use serde_json::{Value, json};

use crate::support::{letters, numbers, order, orders, site};

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn skip_takes_only_the_position_at_which_the_projection_stands_failed() {
    let site = site(Databases::Two, "");
    let leader = site.leader("a");
    site.append(&orders(10, |at| at == 4), 500);
    site.eventually("it is stopped", || {
        (site.status_of("order")["state"] == "stopped").then_some(())
    });
    for wrong in ["4", "6", "11"] {
        let answer = site.run(&["skip", "order", "--position", wrong]);
        assert_eq!(answer.code, 1, "{answer:?}");
        assert!(
            answer.error.contains("PH0811") && answer.error.contains("position 5"),
            "{answer:?}"
        );
    }
    let unknown = site.run(&["skip", "ordre", "--position", "5"]);
    assert!(
        unknown.code == 1 && unknown.error.contains("did you mean order?"),
        "{unknown:?}"
    );
    // Without any replica, too.
    leader.stop();
    let answer = json_of(&site.runs(&["skip", "order", "--position", "5", "-o", "json"]));
    assert_eq!(
        answer,
        json!({ "projection": "order", "position": 5, "skipped": true })
    );
    let again = site.runs(&["skip", "order", "--position", "5"]);
    assert!(again.contains("already"), "{again}");
    let audit = site.model("select action, detail from projector.audit where action = 'skip'");
    assert_eq!(audit, "skip|{\"position\": 5}");
    let _next = site.leader("b");
    site.all_is_right_at_the_head();
    let found = letters(&site, "order");
    assert_eq!(numbers(&found, "position"), [5]);
    assert_eq!(
        (&found[0]["parked"], &found[0]["category"]),
        (&json!(false), &json!("rejected"))
    );
    assert!(
        found[0]["stream"]
            .as_str()
            .unwrap_or_default()
            .starts_with("order-eeee"),
        "{found:?}"
    );
    let healthy = site.run(&["skip", "order", "--position", "5"]);
    assert_eq!(healthy.code, 0, "{healthy:?}");
    let healthy = site.run(&["skip", "order", "--position", "10"]);
    assert!(
        healthy.code == 1 && healthy.error.contains("has not failed"),
        "{healthy:?}"
    );
}

#[test]
fn a_pause_does_not_hide_what_failed_before_it_and_skip_leaves_it_paused() {
    let site = site(Databases::One, "");
    let _leader = site.leader("a");
    site.append(&(order(1, "vanished") + &order(2, "pending")), 500);
    site.eventually("it is stopped", || {
        (site.status_of("order")["state"] == "stopped").then_some(())
    });
    site.runs(&["pause", "order", "--reason", "month's end"]);
    let status = site.status_of("order");
    assert_eq!(
        (&status["state"], &status["failure"]["position"]),
        (&json!("paused"), &json!(1))
    );
    assert_eq!(status["paused_reason"], "month's end");
    let text = site.runs(&["status"]);
    assert!(text.contains("order: paused: month's end"), "{text}");
    assert!(
        text.contains("order: had stopped before it was paused (rejected)"),
        "{text}"
    );
    site.runs(&["skip", "order", "--position", "1"]);
    assert_eq!(site.status_of("order")["state"], "paused");
    site.runs(&["resume", "order"]);
    site.all_is_right_at_the_head();
}

#[test]
fn letters_are_shown_with_their_event_and_discarded_only_on_purpose() {
    let site = site(Databases::Two, "[defaults]\non_error = \"skip\"");
    let leader = site.leader("a");
    site.append(&orders(6, |at| at % 2 == 1), 500);
    site.all_is_right_at_the_head();
    leader.stop();
    let found = letters(&site, "order");
    let ids = numbers(&found, "id");
    assert_eq!(numbers(&found, "position"), [2, 4, 6]);
    let id = ids[0].to_string();
    let shown = json_of(&site.runs(&["dead-letter", "show", &id, "-o", "json"]));
    assert_eq!(shown["event"]["data"]["status"], "vanished", "{shown}");
    assert_eq!(
        shown["event"]["id"], shown["dead_letter"]["event_id"],
        "{shown}"
    );
    let text = site.runs(&["dead-letter", "show", &id]);
    assert!(
        text.contains("vanished") && text.contains("OrderCreated"),
        "{text}"
    );
    let table = site.runs(&["dead-letter", "list"]);
    assert!(
        table.contains("POSITION") && table.contains("skipped"),
        "{table}"
    );
    let limited = site.run(&["dead-letter", "list", "--limit", "2"]);
    assert!(limited.error.contains("more than 2"), "{limited:?}");

    let asked = site.run(&["dead-letter", "discard", &id]);
    assert!(asked.code == 2 && asked.error.contains("`-y`"), "{asked:?}");
    assert_eq!(letters(&site, "order").len(), 3, "nothing was changed");
    let missing = site.run(&["dead-letter", "discard", &id, "4711", "-y"]);
    assert!(
        missing.code == 1 && missing.error.contains("PH0812"),
        "{missing:?}"
    );
    assert_eq!(letters(&site, "order").len(), 3, "all or none");
    let done = json_of(&site.runs(&["dead-letter", "discard", &id, "-y", "-o", "json"]));
    assert_eq!(done["discarded"][0]["id"], ids[0], "{done}");
    let again = site.runs(&["dead-letter", "discard", &id, "-y"]);
    assert!(again.contains("before"), "{again}");
    let gone = site.run(&["dead-letter", "retry", &id]);
    assert!(
        gone.code == 1 && gone.error.contains("discarded"),
        "{gone:?}"
    );
    assert_eq!(numbers(&letters(&site, "order"), "position"), [4, 6]);
    let all = json_of(&site.runs(&["dead-letter", "list", "--all", "-o", "json"]));
    assert_eq!(
        all["dead_letters"][0]["resolved"]["how"], "discarded",
        "{all}"
    );
    assert_eq!(all["more"], false);
    let audit =
        site.model("select count(*) from projector.audit where action = 'dead-letter discard'");
    assert_eq!(audit, "1");
    assert_eq!(site.run(&["dead-letter", "show", "4711"]).code, 1);
    assert_eq!(site.run(&["dead-letter", "list", "ordre"]).code, 1);
    site.rows_are_right();
}

#[test]
fn wait_fails_at_once_for_a_name_that_nothing_will_bring() {
    let site = site(Databases::One, "");
    let _leader = site.leader("a");
    let begun = std::time::Instant::now();
    let answer = site.run(&["wait", "ordre", "--until-caught-up", "--timeout", "60s"]);
    assert!(
        answer.code == 1 && answer.error.contains("did you mean order?"),
        "{answer:?}"
    );
    assert!(
        begun.elapsed() < projector_testkit::site::PATIENCE,
        "{:?}",
        begun.elapsed()
    );
    let stranger = site.run(&["wait", "billing", "--until-caught-up", "--timeout", "200ms"]);
    assert!(
        stranger.code == 1 && stranger.error.contains("has not begun"),
        "{stranger:?}"
    );
    // What the configuration names may still come.
    site.configure(|text| format!("{text}\n[[projection]]\nname = \"orders\"\n"));
    let later = site.run(&["wait", "orders", "--until-caught-up", "--timeout", "200ms"]);
    assert!(later.error.contains("has not begun"), "{later:?}");
}
