//! Which file a `[[projection]]` means: its own, under its pin, and no other in its place.

use std::fs;

use projector_host::plugin::file::sha256;

use crate::support::{Place, count, small};

fn declare(place: &Place, lines: &str) {
    let section = format!("[[projection]]\nname = \"hostile\"\n{lines}\n");
    place.site.configure(|text| text + &section);
}

fn pin(bytes: &[u8]) -> String {
    format!("sha256 = \"{}\"", sha256(bytes))
}

/// What `validate` says, which has to be a refusal.
fn refused(place: &Place) -> String {
    let answer = place.site.run(&["validate"]);
    assert!(answer.code != 0, "{answer:?}");
    answer.out + &answer.error
}

#[test]
fn a_file_of_the_folder_does_not_stand_in_for_a_configured_one_that_is_gone() {
    let place = Place::new("");
    place.save("hostile.wasm", &small("1.0"));
    let zeros = format!("sha256 = \"{}\"", "0".repeat(64));
    declare(
        &place,
        &format!("component = \"nope/hostile.wasm\"\n{zeros}"),
    );
    let said = refused(&place);
    assert!(
        said.contains("PH0514") && said.contains("PH0518") && said.contains("nope/hostile.wasm"),
        "{said}"
    );
    place
        .site
        .configure(|text| text.replace(&zeros, &pin(&small("1.0"))));
    let said = refused(&place);
    assert!(said.contains("PH0514") && said.contains("PH0518"), "{said}");
}

#[test]
fn another_file_does_not_run_in_the_place_of_one_that_its_pin_refuses() {
    let place = Place::new("watch = true");
    place.save("hostile.wasm", &small("1.0"));
    place.save("evil.wasm", &small("9.0"));
    declare(&place, &pin(&small("2.0")));
    let said = refused(&place);
    assert!(
        said.contains("PH0513") && said.contains("PH0518") && said.contains("evil.wasm"),
        "{said}"
    );
    // With nothing to lead it leaves the lock alone.
    let leader = place.site.replica("a");
    leader.logs("PH0518");
    place.save("hostile.wasm", &small("2.0"));
    leader.leads_eventually();
    place.applies_an_event("hostile");
    let ids = "select string_agg(id::text, ' ' order by id) from read_model.events";
    assert_eq!(place.site.model(ids), "2.0");
    leader.stop();
}

#[test]
fn without_a_file_of_its_name_a_projection_is_found_under_another_one_and_pinned_there() {
    let place = Place::new("watch = true");
    place.save("other.wasm", &small("1.0"));
    declare(&place, &pin(&small("1.0")));
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    place.save("other.wasm", &small("2.0"));
    leader.logs("PH0513");
    // Its own file comes, and the other one goes on in nobody's place.
    place.save("hostile.wasm", &small("1.0"));
    leader.logs("PH0518");
    place.applies_an_event("hostile");
    fs::remove_file(place.path("other.wasm")).expect("it is there");
    place.site.eventually("nothing is refused any more", || {
        let (_, answer) = leader.get("/readyz")?;
        answer.contains("\"refused_plugins\":[]").then_some(())
    });
    place.applies_an_event("hostile");
    assert_eq!(count(&leader, "PH0512"), 0);
    leader.stop();
}
