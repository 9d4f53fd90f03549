//! What each state of a projection comes to for those who wait.

use serde_json::{Value, json};

use super::*;
use crate::event_store::event::Position;
use crate::plugin::Folder;
use crate::read_model::control::{Failure as Why, Projection};
use crate::read_model::folders::Word;
use members::members;

const TARGET: Position = Position(10);

fn row(state: &str, position: i64) -> Projection {
    Projection {
        name: "order".to_owned(),
        generation: 1,
        sha256: "abc".to_owned(),
        plugin_version: "1".to_owned(),
        state: state.to_owned(),
        position: Position(position),
        failure: (state == "stopped").then(|| Why {
            category: "store-changed".to_owned(),
            position: None,
            event_type: None,
            message: "PH0804: the store went back".to_owned(),
            at: 0,
        }),
        paused_reason: None,
        note: None,
    }
}

fn word(projections: Value, refused: Value) -> Word {
    Word {
        folder: Folder {
            host: "vm".to_owned(),
            dir: "/srv/plugins".to_owned(),
        },
        node: "one".to_owned(),
        projections,
        refused,
    }
}

/// `done`, `off`, `never: …` or `not yet: …`.
fn told(rows: &[Projection], words: &[Word], who: &Who) -> String {
    told_where_it_ends(rows, words, who, Position(300))
}

fn told_where_it_ends(rows: &[Projection], words: &[Word], who: &Who, end: Position) -> String {
    match judge(members(rows, words), who, TARGET, end) {
        Judged::Done(reached) if reached.done.is_empty() && !reached.off.is_empty() => {
            "off".to_owned()
        }
        Judged::Done(_) => "done".to_owned(),
        Judged::Never(failure) => format!("never: {}", failure.message),
        Judged::NotYet(missing) => format!("not yet: {missing}"),
    }
}

#[test]
fn who_stands_beyond_the_stores_end_has_read_another_store() {
    let here = [word(json!({ "order": "abc" }), json!([]))];
    let rows = [row("live", 260)];
    let told = |end| told_where_it_ends(&rows, &here, &Who::All, Position(end));
    assert_eq!(told(260), "done");
    assert!(
        told(259).starts_with("not yet: order stands at position 260"),
        "{}",
        told(259)
    );
}

/// Every state, behind the target, at it and beyond it, for all who wait.
#[test]
fn every_state_has_one_answer_for_all_who_wait() {
    let order = || vec!["order".to_owned()];
    let everybody = [Who::All, Who::Named(order()), Who::Own(Vec::new())];
    let here = word(json!({ "order": "abc" }), json!([]));
    for state in State::ALL {
        for position in [9, 10, 260] {
            for who in &everybody {
                let told = told(
                    &[row(state.as_str(), position)],
                    std::slice::from_ref(&here),
                    who,
                );
                let expected = match state {
                    State::Stopped | State::Paused => "never: ",
                    // There is a file again.
                    State::NoPlugin => "not yet: ",
                    _ if position < TARGET.0 => "not yet: order stands at 9 of 10",
                    _ => "done",
                };
                assert!(
                    told.starts_with(expected),
                    "{state:?} {position} {who:?}: {told}"
                );
                assert!(
                    !told.starts_with("never") || told.contains("order"),
                    "{told}"
                );
            }
        }
    }
}

#[test]
fn who_is_switched_off_is_not_waited_for_unless_by_name() {
    let off = [row("no-plugin", 3)];
    let named = Who::Named(vec!["order".to_owned()]);
    assert_eq!(told(&off, &[], &Who::All), "off");
    assert_eq!(told(&off, &[], &Who::Own(Vec::new())), "off");
    assert!(told(&off, &[], &named).starts_with("never: "));
    // A file that cannot be used was not taken away on purpose.
    let broken = [word(json!({ "order": null }), json!([]))];
    for who in [&Who::All, &Who::Own(Vec::new()), &named] {
        assert!(told(&off, &broken, who).starts_with("never: "), "{who:?}");
    }
}

#[test]
fn nobody_is_left_out_for_want_of_a_row() {
    let live = [row("live", 10)];
    let refused = |state| {
        let message = "PH0703: the schema exists already";
        json!([{ "projection": "taken", "message": message, "state": state }])
    };
    let at_once = [word(json!({ "taken": "def" }), refused("stopped"))];
    let later = [word(json!({ "taken": "def" }), refused("retrying"))];
    let unbegun = [word(json!({ "taken": "def" }), json!([]))];
    for who in [Who::All, Who::Own(vec!["taken".to_owned()])] {
        let never = told(&live, &at_once, &who);
        assert!(
            never.starts_with("never: ") && never.contains("taken") && never.contains("PH0703"),
            "{never}"
        );
        let later = told(&live, &later, &who);
        assert!(
            later.starts_with("not yet: taken cannot begin yet: PH0703"),
            "{later}"
        );
        assert_eq!(told(&live, &unbegun, &who), "not yet: taken has not begun");
    }
    assert!(told(&[], &[], &Who::All).starts_with("not yet: "));
    let unheard = Who::Own(vec!["new".to_owned()]);
    assert_eq!(told(&live, &[], &unheard), "not yet: new has not begun");
}
