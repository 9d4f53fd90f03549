//! What a changed file does: `refuse`, `continue`, `rebuild`, pins, and what somebody accepts.

use projector_host::plugin::file::sha256;

use crate::support::{Place, count, small, small_with};

/// The only column of the small guest's table gets another type.
const OTHER_COLUMN: (&str, &str) = (
    "id\\00\\00\\00\\00\\00\\00text\"",
    "id\\00\\00\\00\\00\\00\\00uuid\"",
);

const IDS: &str = "select string_agg(id::text, ' ' order by id) from read_model.events";

#[test]
fn a_refused_file_waits_until_somebody_accepts_it_and_the_recorded_plugin_goes_on() {
    let place = Place::new("watch = true");
    let (first, second) = (small("1.0"), small("2.0"));
    place.save("hostile.wasm", &first);
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    place.save("hostile.wasm", &second);
    leader.logs("PH0820");
    place.applies_an_event("hostile");
    assert_eq!(place.site.model(IDS), "1.0", "the recorded plugin goes on");
    let status = place.site.status_of("hostile");
    let note = status["plugin"]["note"].as_str().unwrap_or_default();
    assert!(
        note.contains("--accept-plugin") && note.contains(&sha256(&second)[..12]),
        "{status}"
    );
    place.state("hostile", "live");
    let shown = place.site.runs(&["status"]);
    assert!(
        shown.contains("--accept-plugin") && shown.contains("has another file for hostile"),
        "{shown}"
    );
    let answer = place.site.run(&["validate"]);
    assert!(
        answer.code == 0 && answer.out.contains("PH0802"),
        "{answer:?}"
    );
    // A live projection without any event to apply takes it, too.
    place.site.runs(&["resume", "hostile", "--accept-plugin"]);
    place.records("hostile", &second);
    place.applies_an_event("hostile");
    assert_eq!(place.site.model(IDS), "1.0 2.0");
    assert_eq!(
        place.site.status_of("hostile")["plugin"]["note"],
        serde_json::Value::Null
    );
    let audit = "select string_agg(action, ' ' order by id) from projector.audit";
    assert_eq!(place.site.model(audit), "resume accept-plugin");
    // What somebody accepted once holds for that file only.
    place.save("hostile.wasm", &small("3.0"));
    place.site.eventually("the third is refused", || {
        (count(&leader, "PH0820") == 2).then_some(())
    });
    place.applies_an_event("hostile");
    assert_eq!(place.site.model(IDS), "1.0 2.0");
    leader.stop();
    // Without the file that made the rows: a new leader takes it from the store.
    let next = place.site.leader_of_one("b");
    next.logs("PH0820");
    place.applies_an_event("hostile");
    assert_eq!(place.site.model(IDS), "1.0 2.0");
    assert_eq!(
        place.site.status_of("hostile")["plugin"]["sha256"],
        sha256(&second)
    );
    next.stop();
}

#[test]
fn a_file_that_cannot_go_on_with_the_rows_is_told_from_one_that_can() {
    let place = Place::new("watch = true\non_change = \"continue\"");
    place.save("hostile.wasm", &small("1.0"));
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    let fits = small("2.0");
    place.save("hostile.wasm", &fits);
    place.runs(&leader, &fits);
    place.save("hostile.wasm", &small_with("3.0", &[OTHER_COLUMN]));
    leader.logs("the column events.id is uuid instead of text");
    place.applies_an_event("hostile");
    assert_eq!(place.site.model(IDS), "1.0 2.0");
    // Nobody can accept that.
    place.site.runs(&["resume", "hostile", "--accept-plugin"]);
    place.applies_an_event("hostile");
    place.site.eventually("what was allowed has lapsed", || {
        (place
            .site
            .model("select count(*) from projector.checkpoints where accepted is not null")
            == "0")
            .then_some(())
    });
    place.records("hostile", &fits);
    let last = small("4.0");
    place.save("hostile.wasm", &last);
    place.runs(&leader, &last);
    place.applies_an_event("hostile");
    assert_eq!(place.site.model(IDS), "1.0 2.0 4.0");
    leader.stop();
}

#[test]
fn a_rebuild_empties_the_tables_and_begins_anew_and_says_so() {
    let place = Place::new("watch = true\non_change = \"rebuild\"");
    place.save("hostile.wasm", &small("1.0"));
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    place.applies_an_event("hostile");
    place
        .site
        .model("grant select on read_model.events to public");
    let second = small("2.0");
    place.save("hostile.wasm", &second);
    place.runs(&leader, &second);
    leader.logs("THE PROJECTION BEGINS ANEW");
    leader.logs("1 of events");
    place.state("hostile", "live");
    place.site.runs(&["wait", "hostile", "--until-caught-up"]);
    assert_eq!(
        place.site.model(IDS),
        "2.0",
        "every event was applied again"
    );
    let granted = "select has_table_privilege('public', 'read_model.events', 'select')";
    assert_eq!(place.site.model(granted), "t", "the view is the same one");
    // Another type of the key: the table is another one.
    let third = small_with(
        "3.0",
        &[
            OTHER_COLUMN,
            (
                "\\08\\01\\00\\00\\03\\00\\00\\00\" \"\\00",
                "\\e0\\04\\00\\00\\24\\00\\00\\00\" \"\\00",
            ),
            (
                ";; <describe>",
                "(data (i32.const 1248) \"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\")\n;; <describe>",
            ),
        ],
    );
    place.save("hostile.wasm", &third);
    place.runs(&leader, &third);
    place.site.runs(&["wait", "hostile", "--until-caught-up"]);
    assert_eq!(
        place.site.model(IDS),
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    );
    let audit =
        "select action || ' ' || (detail->'rows'->>'events') from projector.audit order by id";
    assert_eq!(place.site.model(audit), "begin-anew 1\nbegin-anew 1");
    // Somebody's view hangs on the table that would have to go: nothing goes.
    place
        .site
        .model("create view public.mine as select * from read_model.events");
    place.save("hostile.wasm", &second);
    let status = place.state("hostile", "stopped");
    let message = status["failure"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("PH0703") && message.contains("mine"),
        "{status}"
    );
    assert_eq!(
        place.site.model(IDS),
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    );
    place.site.model("drop view public.mine");
    place.site.runs(&["resume", "hostile"]);
    place.records("hostile", &second);
    place.site.runs(&["wait", "hostile", "--until-caught-up"]);
    assert_eq!(place.site.model(IDS), "2.0");
    leader.stop();
}

#[test]
fn for_development_a_poison_event_is_left_behind_by_the_next_save() {
    let place = Place::new("");
    let bad = small_with(
        "1.0",
        &[(
            "(i32.const 656))\n  ;; </project>",
            "unreachable)\n  ;; </project>",
        )],
    );
    place.save("hostile.wasm", &bad);
    let leader = place.site.replica_with("a", &["run", "--dev"], &[]);
    leader.leads_eventually();
    place.site.append(
        "{\"stream\":\"s-1\",\"type\":\"Happened\",\"data\":{}}\n",
        10,
    );
    place.state("hostile", "stopped");
    let good = small("2.0");
    place.save("hostile.wasm", &good);
    place.runs(&leader, &good);
    place.site.runs(&["wait", "hostile", "--until-caught-up"]);
    assert_eq!(place.site.model(IDS), "2.0");
    // Back again, as after an undo: the file always counts.
    place.save("hostile.wasm", &bad);
    place.runs(&leader, &bad);
    place.state("hostile", "stopped");
    place.save("hostile.wasm", &good);
    place.state("hostile", "live");
    assert_eq!(place.site.model(IDS), "2.0");
    leader.stop();
}

#[test]
fn a_pin_holds_when_files_change_and_moves_with_the_configuration() {
    let place = Place::new("watch = true\non_change = \"continue\"");
    let (first, second) = (small("1.0"), small("2.0"));
    let pin = |bytes: &[u8]| {
        format!(
            "[[projection]]\nname = \"hostile\"\nsha256 = \"{}\"\n",
            sha256(bytes)
        )
    };
    place.site.configure(|text| text + &pin(&first));
    place.save("hostile.wasm", &first);
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    place.save("hostile.wasm", &second);
    leader.logs("PH0513");
    place.applies_an_event("hostile");
    assert_eq!(place.site.model(IDS), "1.0");
    place
        .site
        .configure(|text| text.replace(&sha256(&first), &sha256(&second)));
    place.records("hostile", &second);
    place.applies_an_event("hostile");
    assert_eq!(place.site.model(IDS), "1.0 2.0");
    // The pin first and the file later: the configuration waits for the file.
    let third = small("3.0");
    place
        .site
        .configure(|text| text.replace(&sha256(&second), &sha256(&third)));
    leader.logs("the changed configuration is refused");
    place.applies_an_event("hostile");
    place.save("hostile.wasm", &third);
    place.records("hostile", &third);
    place.applies_an_event("hostile");
    assert_eq!(place.site.model(IDS), "1.0 2.0 3.0");
    leader.stop();
}

#[test]
fn a_pin_that_goes_back_takes_the_older_file_under_continue() {
    let place = Place::new("watch = true\non_change = \"continue\"");
    let (first, second) = (small("1.0"), small("2.0"));
    place.site.configure(|text| {
        let digest = sha256(&first);
        format!("{text}[[projection]]\nname = \"hostile\"\nsha256 = \"{digest}\"\n")
    });
    place.save("hostile.wasm", &first);
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    let moved = |from: &[u8], to: &[u8]| {
        place.save("hostile.wasm", to);
        place
            .site
            .configure(|text| text.replace(&sha256(from), &sha256(to)));
        place.records("hostile", to);
        place.applies_an_event("hostile");
        place.state("hostile", "live");
    };
    moved(&first, &second);
    moved(&second, &first);
    assert_eq!(place.site.model(IDS), "1.0 2.0");
    let note = &place.site.status_of("hostile")["plugin"]["note"];
    assert_eq!(*note, serde_json::Value::Null);
    leader.stop();
}
