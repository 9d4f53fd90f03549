//! Replicas with different files: nobody goes on with other code than the recorded one, and everybody is told.

use std::fs;

use projector_host::plugin::file::sha256;
use projector_testkit::domain::Generator;
use projector_testkit::site::Replica;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::{Place, other, save, shipped, small, variant};

const IDS: &str = "select string_agg(id::text, ' ' order by id) from read_model.events";

/// A replica with a plugin folder of its own.
fn beside<'a>(place: &'a Place, node: &str, dir: &TempDir) -> Replica<'a> {
    let text = fs::read_to_string(place.site.config()).expect("it was written");
    let own = text.replace(
        &place.dir.path().display().to_string(),
        &dir.path().display().to_string(),
    );
    let config = dir.path().join("own.toml");
    fs::write(&config, own).expect("there is room");
    place
        .site
        .replica_from(node, place.site.program_with(&config, &["run"]))
}

#[test]
fn an_old_file_does_not_go_on_where_a_newer_one_was_accepted() {
    for on_change in ["refuse", "continue"] {
        let place = Place::new(&format!("watch = true\non_change = \"{on_change}\""));
        let (old, new) = (small("1.0"), small("2.0"));
        place.save("hostile.wasm", &old);
        let other = tempfile::tempdir().expect("there is room");
        let first = place.site.leader_of_one("a");
        let second = beside(&place, "b", &other);
        second.stands_by_eventually();
        // Saved while it looks, but not while it leads.
        save(other.path(), "hostile.wasm", &old);
        second.logs("plugin loaded");
        place.applies_an_event("hostile");
        place.save("hostile.wasm", &new);
        if on_change == "refuse" {
            first.logs("PH0820");
            place.site.runs(&["resume", "hostile", "--accept-plugin"]);
        }
        place.records("hostile", &new);
        place.applies_an_event("hostile");
        let shown = place.site.runs(&["status"]);
        assert!(
            shown.contains("b (") && shown.contains("has another file for hostile"),
            "{shown}"
        );
        first.kill();
        second.leads_eventually();
        second.logs("PH0820");
        if on_change == "continue" {
            assert!(
                second.log().contains("the file is an old one"),
                "{}",
                second.log()
            );
        }
        // Its own row would be `1.0` again if the old code had written.
        place.site.model("delete from hostile_g1.events");
        place.applies_an_event("hostile");
        assert_eq!(place.site.model(IDS), "2.0", "{on_change}");
        let status = place.site.status_of("hostile");
        assert_eq!(status["plugin"]["sha256"], sha256(&new));
        assert_eq!(status["plugin"]["version"], "2.0");
        // The rest of the deployment: the new file comes, and there is nothing to say any more.
        save(other.path(), "hostile.wasm", &new);
        place.site.eventually("the note goes", || {
            place.site.status_of("hostile")["plugin"]["note"]
                .is_null()
                .then_some(())
        });
        second.stop();
    }
}

#[test]
fn a_replica_without_the_file_goes_on_with_the_kept_plugin() {
    let place = Place::new("watch = true");
    let names = ["order", "scheduling", "service-request"];
    let other = tempfile::tempdir().expect("there is room");
    for name in names {
        place.save(&format!("{name}.wasm"), &variant(&shipped(name), 900));
    }
    // The second replica has one old file, one broken file, and nothing of the third.
    save(other.path(), "order.wasm", &shipped("order"));
    save(
        other.path(),
        "scheduling.wasm",
        &shipped("scheduling")[..10_000],
    );
    let mut generator = Generator::new(81);
    let first = place.site.leader("a");
    place.site.append(&generator.lines(300), 50);
    place.site.wait();
    let second = beside(&place, "b", &other);
    second.stands_by_eventually();
    first.kill();
    second.leads_eventually();
    place.site.append(&generator.lines(300), 50);
    place.site.all_is_right_at_the_head();
    for name in names {
        let status = place.site.status_of(name);
        let note = status["plugin"]["note"].as_str().unwrap_or_default();
        assert!(note.contains("PH0820"), "{status}");
        assert_eq!(
            status["plugin"]["sha256"],
            sha256(&variant(&shipped(name), 900))
        );
    }
    second.stop();
}

#[test]
fn a_file_that_is_gone_everywhere_leaves_its_projection_without_a_plugin() {
    let place = Place::new("watch = true");
    place.save("hostile.wasm", &small("1.0"));
    let other = tempfile::tempdir().expect("there is room");
    save(other.path(), "hostile.wasm", &small("1.0"));
    let leader = place.site.leader_of_one("a");
    let standby = beside(&place, "b", &other);
    standby.stands_by_eventually();
    place.site.eventually("both have told what they have", || {
        (place.site.model("select count(*) from projector.folders") == "2").then_some(())
    });
    place.applies_an_event("hostile");
    // One of two files: it goes on.
    fs::remove_file(place.path("hostile.wasm")).expect("it is there");
    leader.logs("PH0820");
    place.applies_an_event("hostile");
    // The other one as well: asked again when something changes, here a leader's start.
    fs::remove_file(other.path().join("hostile.wasm")).expect("it is there");
    place.site.eventually("the standby has told that", || {
        (place
            .site
            .model("select count(*) from projector.folders where projections ? 'hostile'")
            == "0")
            .then_some(())
    });
    leader.stop();
    standby.leads_eventually();
    place.state("hostile", "no-plugin");
    assert!(standby.log().contains("PH0822"), "{}", standby.log());
    let answer = place.site.run(&["validate"]);
    assert!(
        answer.code == 0 && answer.out.contains("PH0822"),
        "{answer:?}"
    );
    place.site.append(
        "{\"stream\":\"s-1\",\"type\":\"Happened\",\"data\":{}}\n",
        10,
    );
    let answer = place
        .site
        .run(&["wait", "hostile", "--until-caught-up", "--timeout", "20s"]);
    assert!(
        answer.code == 1 && answer.error.contains("no-plugin"),
        "{answer:?}"
    );
    // And back.
    save(other.path(), "hostile.wasm", &small("1.0"));
    place.state("hostile", "live");
    place
        .site
        .runs(&["wait", "hostile", "--until-caught-up", "--timeout", "30s"]);
    assert_eq!(place.site.model(IDS), "1.0");
    standby.stop();
    assert_eq!(
        place.site.model("select count(*) from projector.folders"),
        "0",
        "nobody speaks any more"
    );
}

#[test]
fn kept_plugins_go_when_nobody_names_them_any_more() {
    let place = Place::new("watch = true\non_change = \"continue\"");
    place.save("hostile.wasm", &small("1.0"));
    place.save("another.wasm", &other("1.0"));
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    place.applies_an_event("another");
    for version in ["2.0", "3.0"] {
        let bytes = small(version);
        place.save("hostile.wasm", &bytes);
        place.runs(&leader, &bytes);
    }
    let kept = "select count(*) from projector.components";
    assert_eq!(
        place.site.model(kept),
        "4",
        "somebody may be about to name them"
    );
    place
        .site
        .model("update projector.components set stored_at = stored_at - interval '1 hour'");
    let last = small("4.0");
    place.save("hostile.wasm", &last);
    place.runs(&leader, &last);
    let named =
        "select count(*) from projector.components join projector.generations using (sha256)";
    assert_eq!(
        (place.site.model(kept), place.site.model(named)),
        ("2".into(), "2".into())
    );
    leader.stop();
}

#[test]
fn replicas_that_share_a_folder_each_keep_a_word_of_their_own() {
    let place = Place::new("watch = true");
    place.save("hostile.wasm", &small("1.0"));
    let other = tempfile::tempdir().expect("there is room");
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    let same = place.site.replica("b");
    let apart = beside(&place, "c", &other);
    for standby in [&same, &apart] {
        standby.stands_by_eventually();
        let node = standby.node();
        let told = format!("select count(*) from projector.folders where node = '{node}'");
        let what = format!("{node} has told what it has");
        place
            .site
            .eventually(&what, || (place.site.model(&told) == "1").then_some(()));
    }
    let nodes = "select string_agg(node, ' ' order by node) from projector.folders";
    same.stop();
    assert_eq!(place.site.model(nodes), "a c", "it took only its own back");
    leader.kill();
    apart.leads_eventually();
    place.applies_an_event("hostile");
    let note = place.site.status_of("hostile")["plugin"]["note"].to_string();
    assert!(note.contains("PH0820") && note.contains("a on "), "{note}");
    apart.stop();
}

#[test]
fn a_kept_plugin_that_was_damaged_is_mended_by_a_leader_with_the_file() {
    let place = Place::new("watch = true");
    place.save("hostile.wasm", &small("1.0"));
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    leader.stop();
    place
        .site
        .model("update projector.components set bytes = substr(bytes, 2)");
    let leader = place.site.leader_of_one("b");
    place.applies_an_event("hostile");
    let whole = "select bool_and(encode(sha256(bytes), 'hex') = sha256) from projector.components";
    assert_eq!(place.site.model(whole), "t");
    leader.stop();
}

#[test]
fn a_replica_that_is_given_another_folder_speaks_for_the_old_one_no_more() {
    let place = Place::new("watch = true");
    place.save("hostile.wasm", &small("1.0"));
    let other = tempfile::tempdir().expect("there is room");
    save(other.path(), "hostile.wasm", &small("1.0"));
    let leader = place.site.leader_of_one("a");
    let dirs = "select string_agg(dir, ' ') from projector.folders";
    let [old, new] = [place.dir.path(), other.path()].map(|dir| dir.display().to_string());
    place.site.eventually("it has told what it has", || {
        (place.site.model(dirs) == old).then_some(())
    });
    place.site.configure(|text| text.replace(&old, &new));
    leader.signal(Signal::HUP);
    place.site.eventually("only the new folder is told", || {
        (place.site.model(dirs) == new).then_some(())
    });
    place.applies_an_event("hostile");
    leader.stop();
}
