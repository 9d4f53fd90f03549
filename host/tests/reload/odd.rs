//! Odd orders of events in the plugin folder.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Place, count, other, small};

const CONTINUE: &str = "watch = true\non_change = \"continue\"";

#[test]
fn plugins_are_added_while_the_leader_runs_and_one_with_a_taken_name_is_refused() {
    let place = Place::new(CONTINUE);
    let leader = place.site.replica("a");
    leader.logs("there is no plugin in the folder");
    place.save("hostile.wasm", &small("1.0"));
    place.applies_an_event("hostile");
    place.save("second.wasm", &other("1.0"));
    place.applies_an_event("another");
    // The one that was there first goes on.
    place.save("third.wasm", &small("9.0"));
    leader.logs("PH0512");
    place.applies_an_event("hostile");
    assert_eq!(count(&leader, "PH0512"), 1, "the newcomer alone is refused");
    assert_eq!(
        place
            .site
            .model("select string_agg(id, ' ') from read_model.events"),
        "1.0"
    );
    // Renaming a file is a new file, a taken name, and a file that is gone, in this order.
    fs::remove_file(place.path("third.wasm")).expect("it is there");
    fs::rename(place.path("hostile.wasm"), place.path("renamed.wasm")).expect("one folder");
    place.site.eventually("nothing is refused any more", || {
        let (_, answer) = leader.get("/readyz")?;
        answer.contains("\"refused_plugins\":[]").then_some(())
    });
    place.applies_an_event("hostile");
    assert_eq!(
        place.site.status_of("hostile")["plugin"]["note"],
        serde_json::Value::Null
    );
    leader.stop();
}

#[test]
fn with_a_leader_for_each_projection_a_new_one_finds_its_leader() {
    let place = Place::new(CONTINUE);
    place
        .site
        .configure(|text| text.replace("[leader]\n", "[leader]\nscope = \"projection\"\n"));
    place.save("hostile.wasm", &small("1.0"));
    let first = place.site.replica("a");
    let second = place.site.replica("b");
    place.applies_an_event("hostile");
    place.save("another.wasm", &other("1.0"));
    place.applies_an_event("another");
    place.save("hostile.wasm", &small("2.0"));
    place.records("hostile", &small("2.0"));
    place.applies_an_event("hostile");
    // One that only the record knows, after a start without its file.
    first.stop();
    second.kill();
    fs::remove_file(place.path("another.wasm")).expect("it is there");
    let third = place.site.replica("c");
    place.applies_an_event("hostile");
    place.state("another", "no-plugin");
    place.save("another.wasm", &other("1.0"));
    place.applies_an_event("another");
    third.stop();
}

#[test]
fn a_table_that_another_projection_has_stops_the_newcomer_alone_and_status_shows_it() {
    let place = Place::new(CONTINUE);
    place.save("hostile.wasm", &small("1.0"));
    let leader = place.site.leader_of_one("a");
    place.site.model("create table read_model.things (id int)");
    place.save("another.wasm", &other("1.0"));
    leader.logs("PH0703");
    place.site.eventually("status shows it", || {
        let status = place.site.status();
        let one = status["projections"]
            .as_array()?
            .iter()
            .find(|one| one["name"] == "another")?
            .clone();
        let message = one["failure"]["message"].as_str()?;
        (one["state"] == "stopped" && message.contains("PH0703")).then_some(())
    });
    place.applies_an_event("hostile");
    // It has no row, and is not left out for that.
    let waited = place.site.run(&["wait", "--until-caught-up"]);
    assert_eq!(waited.code, 1, "{waited:?}");
    assert!(
        waited.error.contains("another") && waited.error.contains("PH0703"),
        "{waited:?}"
    );
    let invalid = place.site.run(&["validate"]);
    assert_eq!(invalid.code, 78, "{invalid:?}");
    assert!(invalid.out.contains("error[PH0703]"), "{invalid:?}");
    assert_eq!(leader.code("/lagz?events=1000000"), 503);
    place.site.model("drop table read_model.things");
    place.state("another", "live");
    place.site.runs(&["wait", "--until-caught-up"]);
    place.site.runs(&["validate"]);
    leader.stop();
}

#[test]
fn tables_that_fail_for_the_moment_are_in_status_from_the_first_failure() {
    let place = Place::new(CONTINUE);
    place.save("hostile.wasm", &small("1.0"));
    let leader = place.site.leader_of_one("a");
    let rename = |from: &str, to: &str| {
        let statement = format!("alter table projector.{from} rename to {to}");
        place.site.model(&statement);
    };
    rename("components", "elsewhere");
    place.save("another.wasm", &other("1.0"));
    let status = place.state("another", "retrying");
    assert_eq!(status["generation"], 0, "{status}");
    assert_eq!(status["caught_up"], false, "{status}");
    let message = status["failure"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("components"), "{status}");
    let waited = place
        .site
        .run(&["wait", "--until-caught-up", "--timeout", "300ms"]);
    assert_eq!(waited.code, 1, "{waited:?}");
    assert!(
        waited.error.contains("another cannot begin yet"),
        "{waited:?}"
    );
    rename("elsewhere", "components");
    place.state("another", "live");
    place.site.runs(&["wait", "--until-caught-up"]);
    leader.stop();
}

#[test]
fn who_has_nothing_to_lead_stays_away_from_the_lock_until_there_is_something() {
    let place = Place::new(CONTINUE);
    fs::write(place.path("broken.wasm"), "no plugin").expect("there is room");
    let idle = place.site.replica("a");
    idle.logs("does not take part");
    place.site.eventually("it says that it leads nothing", || {
        let (code, answer) = idle.get("/readyz")?;
        (code == 200 && answer.contains("leads_nothing") && answer.contains("idle")).then_some(())
    });
    assert!(place.site.status()["leader"].is_null());
    place.save("hostile.wasm", &small("1.0"));
    place.applies_an_event("hostile");
    let (_, answer) = idle.get("/readyz").expect("it answers");
    assert!(!answer.contains("leads_nothing"), "{answer}");
    idle.stop();
}

#[test]
fn who_is_switched_off_is_not_waited_for() {
    let place = Place::new(CONTINUE);
    place.save("hostile.wasm", &small("1.0"));
    place.save("another.wasm", &other("1.0"));
    let leader = place.site.replica("a");
    place.applies_an_event("hostile");
    place.applies_an_event("another");
    fs::remove_file(place.path("another.wasm")).expect("it is there");
    place.state("another", "no-plugin");
    place.applies_an_event("hostile");
    place.site.runs(&["wait", "--until-caught-up"]);
    let named = place.site.run(&["wait", "another", "--until-caught-up"]);
    assert_eq!(named.code, 1, "{named:?}");
    place.site.eventually("nobody is behind", || {
        (leader.code("/lagz?events=0") == 200).then_some(())
    });
    let status = place.site.status_of("another");
    assert_eq!(status["caught_up"], false, "{status}");
    assert_eq!(status["led"], true, "{status}");
    leader.stop();
    let status = place.site.status_of("hostile");
    assert_eq!(status["led"], false, "{status}");
    assert!(place.site.runs(&["status"]).contains("unled"));
    place.site.store(
        "insert into event_store.events (stream, version, type, data, recorded_at) \
         values ('late', 1, 'Happened', '{}', 'infinity')",
    );
    let status = place.site.status_of("hostile");
    assert_eq!(status["lag_events"], 1, "{status}");
    assert!(status["lag_seconds"].is_null(), "{status}");
}

#[test]
fn delete_another_and_back_again() {
    let place = Place::new(CONTINUE);
    let path = place.path("one.wasm");
    place.save("one.wasm", &small("1.0"));
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    fs::remove_file(&path).expect("it is there");
    place.state("hostile", "no-plugin");
    place.save("one.wasm", &other("1.0"));
    place.applies_an_event("another");
    place.save("two.wasm", &small("1.0"));
    place.applies_an_event("hostile");
    place.state("hostile", "live");
    // A folder, and a link that leads nowhere, in the place of a file.
    fs::remove_file(place.path("two.wasm")).expect("it is there");
    fs::create_dir(place.path("two.wasm")).expect("a folder");
    place.state("hostile", "no-plugin");
    fs::remove_dir(place.path("two.wasm")).expect("a folder");
    place.save("two.wasm", &small("2.0"));
    place.records("hostile", &small("2.0"));
    place.applies_an_event("hostile");
    symlink("nowhere", place.path(".link")).expect("a link");
    fs::rename(place.path(".link"), place.path("two.wasm")).expect("one folder");
    leader.logs("PH0501");
    place.applies_an_event("hostile");
    place.applies_an_event("another");
    assert_eq!(place.ids(), "1.0 2.0");
    leader.stop();
}

#[test]
fn a_folder_that_is_moved_away_stops_nothing_and_one_that_is_made_anew_is_heard() {
    let place = Place::new(CONTINUE);
    place.save("hostile.wasm", &small("1.0"));
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    let away = place.dir.path().with_extension("away");
    fs::rename(place.dir.path(), &away).expect("one disk");
    leader.logs("PH0516");
    place.applies_an_event("hostile");
    fs::create_dir(place.dir.path()).expect("a folder");
    fs::rename(away.join("hostile.wasm"), place.path("hostile.wasm")).expect("one disk");
    leader.logs("not in the way any more");
    let second = small("2.0");
    place.save("hostile.wasm", &second);
    place.runs(&leader, &second);
    place.applies_an_event("hostile");
    place.state("hostile", "live");
    fs::remove_dir_all(away).expect("our own");
    leader.stop();
}

#[test]
fn thousands_of_saves_end_with_the_last_one_and_leave_the_leader_as_it_was() {
    let place = Place::new("watch = \"poll\"\non_change = \"continue\"");
    place.save("hostile.wasm", &small("000"));
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    let handles = || fs::read_dir(format!("/proc/{}/fd", leader.pid())).map_or(0, Iterator::count);
    let threads =
        || fs::read_dir(format!("/proc/{}/task", leader.pid())).map_or(0, Iterator::count);
    let before = (handles(), threads());
    let versions: Vec<Vec<u8>> = (1..=50)
        .map(|number| small(&format!("{number:03}")))
        .collect();
    for _ in 0..60 {
        for bytes in &versions {
            place.save("hostile.wasm", bytes);
        }
        place.applies_an_event("hostile");
    }
    place.runs(&leader, &versions[49]);
    place.records("hostile", &versions[49]);
    assert!(
        count(&leader, "the saved plugin runs") < 400,
        "they were put together"
    );
    assert!(
        !leader.log().contains("is refused"),
        "a rename is never half a file"
    );
    place
        .site
        .eventually("file handles and threads are as they were", || {
            (handles() <= before.0 + 8 && threads() <= before.1 + 8).then_some(())
        });
    leader.stop();
}

#[test]
fn a_projection_that_is_abandoned_leaves_nothing_and_its_file_begins_anew() {
    let place = Place::new(CONTINUE);
    place.save("hostile.wasm", &small("1.0"));
    place.save("another.wasm", &other("1.0"));
    let leader = place.site.replica("a");
    place.applies_an_event("hostile");
    place.applies_an_event("another");
    let abandon = ["abandon", "another", "--all", "-y"];
    let offered = place.site.run(&abandon);
    assert_eq!(offered.code, 1, "{offered:?}");
    assert!(offered.error.contains("PH0832"), "{offered:?}");
    fs::remove_file(place.path("another.wasm")).expect("it is there");
    place.state("another", "no-plugin");
    let unasked = place.site.run(&["abandon", "another", "--all"]);
    assert_ne!(unasked.code, 0, "nobody can say yes: {unasked:?}");
    // Somebody's view is not dropped by the way.
    let mine = "create view public.mine as select * from another_g1.things";
    place.site.model(mine);
    let used = place.site.run(&abandon);
    assert_eq!(used.code, 1, "{used:?}");
    assert!(used.error.contains("mine"), "{used:?}");
    assert_eq!(place.site.status_of("another")["state"], "no-plugin");
    place.site.model("drop view public.mine");
    place.site.runs(&abandon);
    let left = "select (select count(*) from projector.checkpoints where projection = 'another') \
                || ' ' || (select count(*) from projector.generations where projection = 'another') \
                || ' ' || (select count(*) from pg_namespace where nspname = 'another_g1') \
                || ' ' || (select count(*) from pg_views where viewname = 'things') \
                || ' ' || (select count(*) from projector.components) \
                || ' ' || (select count(*) from projector.audit where action = 'abandon' and projection = 'another')";
    assert_eq!(place.site.model(left), "0 0 0 0 1 1");
    place.applies_an_event("hostile");
    place.site.runs(&["wait", "--until-caught-up"]);
    assert_eq!(place.site.run(&abandon).code, 1, "there is none any more");
    // With its file it is a new one, from the beginning.
    place.save("another.wasm", &other("1.0"));
    place.state("another", "live");
    fs::remove_file(place.path("another.wasm")).expect("it is there");
    place.state("another", "no-plugin");
    leader.stop();
    place.site.runs(&abandon);
    assert_eq!(
        place.site.model(left),
        "0 0 0 0 1 2",
        "also when nobody leads"
    );
}
