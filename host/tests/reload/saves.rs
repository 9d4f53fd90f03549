//! A saved file is taken up however it is saved, once, and only when it is whole.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::time::SystemTime;

use projector_testkit::domain::Generator;

use crate::support::{Place, count, shipped, small, variant};

/// Far above what is promised for a machine that has time; this one may have none.
const SAVED_TO_RUNNING_MAX: u64 = 10_000;

#[test]
fn every_way_of_saving_is_taken_up_once_and_a_touch_never() {
    let place = Place::new("watch = true\non_change = \"continue\"");
    let mut number = 0;
    let mut next = || {
        number += 1;
        small(&format!("{:03}", number))
    };
    let path = place.path("hostile.wasm");
    place.save("hostile.wasm", &next());
    let leader = place.site.replica("a");
    leader.leads_eventually();
    place.applies_an_event("hostile");
    let mut saves = 0;
    let mut taken = |bytes: &[u8], how: &str| {
        let took = place.runs(&leader, bytes);
        assert!(took < SAVED_TO_RUNNING_MAX, "{how}: {took} ms");
        eprintln!("{how}: running after {took} ms");
        place.records("hostile", bytes);
        saves += 1;
        assert_eq!(count(&leader, "the saved plugin runs"), saves, "{how}");
        place.applies_an_event("hostile");
    };

    let bytes = next();
    place.save("hostile.wasm", &bytes);
    taken(&bytes, "renamed into place");

    let bytes = next();
    fs::write(&path, &bytes).expect("there is room");
    taken(&bytes, "truncated and written");

    let bytes = next();
    fs::remove_file(&path).expect("it is there");
    fs::write(&path, &bytes).expect("there is room");
    taken(&bytes, "deleted and made anew");

    // Nothing changes, so nothing is taken up; the next save shows that nothing else came before it.
    let file = File::options()
        .append(true)
        .open(&path)
        .expect("it is there");
    file.set_modified(SystemTime::now()).expect("our own file");
    drop(file);
    fs::copy(&path, place.path(".copy")).expect("there is room");
    fs::rename(place.path(".copy"), &path).expect("one folder");

    let bytes = next();
    let mut file = File::create(&path).expect("there is room");
    for part in bytes.chunks(bytes.len() / 20 + 1) {
        file.write_all(part).expect("there is room");
        file.sync_all().expect("there is a disk");
        // Takes its time.
        place.site.position("hostile");
    }
    drop(file);
    taken(&bytes, "copied slowly");

    let versions = tempfile::tempdir().expect("there is room");
    for (name, how) in [("one", "link instead of a file"), ("two", "link swapped")] {
        let bytes = next();
        fs::write(versions.path().join(name), &bytes).expect("there is room");
        symlink(versions.path().join(name), place.path(".link")).expect("a link");
        fs::rename(place.path(".link"), &path).expect("one folder");
        taken(&bytes, how);
    }
    // As Kubernetes mounts a ConfigMap: the file is a link through a link, which is swapped.
    let data = |name: &str, bytes: &[u8]| {
        fs::create_dir(place.path(name)).expect("a folder");
        fs::write(place.path(name).join("hostile.wasm"), bytes).expect("there is room");
        symlink(name, place.path("..fresh")).expect("a link");
        fs::rename(place.path("..fresh"), place.path("..data")).expect("one folder");
    };
    let bytes = next();
    data("..1", &bytes);
    symlink("..data/hostile.wasm", place.path(".link")).expect("a link");
    fs::rename(place.path(".link"), &path).expect("one folder");
    taken(&bytes, "link through a link");
    let bytes = next();
    data("..2", &bytes);
    fs::remove_dir_all(place.path("..1")).expect("nobody needs it");
    taken(&bytes, "mounted folder swapped");
    assert!(!leader.log().contains("is refused"), "{}", leader.log());
    leader.stop();
}

#[test]
fn a_half_written_file_waits_and_is_taken_up_when_it_is_whole() {
    let place = Place::new("watch = true\non_change = \"continue\"");
    let (first, second) = (shipped("order"), variant(&shipped("order"), 1));
    place.save("order.wasm", &first);
    let leader = place.site.replica("a");
    leader.leads_eventually();
    place.applies_an_event("order");
    let path = place.path("order.wasm");
    let mut file = File::create(&path).expect("there is room");
    let half = second.len() / 2;
    file.write_all(&second[..half]).expect("there is room");
    file.sync_all().expect("there is a disk");
    // After some seconds somebody should know; meanwhile everything goes on.
    leader.logs("a plugin is refused");
    assert!(leader.log().contains("PH0502"), "{}", leader.log());
    place.applies_an_event("order");
    file.write_all(&second[half..]).expect("there is room");
    drop(file);
    place.runs(&leader, &second);
    place.records("order", &second);
    leader.logs("not in the way any more");
    leader.stop();
}

#[test]
fn a_broken_file_is_refused_once_and_the_old_one_goes_on() {
    let place = Place::new("watch = true\non_change = \"continue\"");
    let good = small("1.0");
    place.save("hostile.wasm", &good);
    let leader = place.site.replica("a");
    leader.leads_eventually();
    place.applies_an_event("hostile");
    let broken = [
        ("text", b"(module)".to_vec(), "PH0502"),
        (
            "a module without the contract",
            b"\0asm\x01\0\0\0".to_vec(),
            "PH0505",
        ),
        (
            "an empty component",
            b"\0asm\x0d\0\x01\0".to_vec(),
            "PH0506",
        ),
        ("nothing", Vec::new(), "PH0502"),
    ];
    for (at, (what, bytes, code)) in broken.iter().enumerate() {
        place.save("hostile.wasm", bytes);
        place.site.eventually(&format!("{what} is refused"), || {
            (count(&leader, "a plugin is refused") == at + 1).then_some(())
        });
        assert!(leader.log().contains(code), "{what}");
        // The same bytes again are no news.
        place.save("hostile.wasm", bytes);
        place.applies_an_event("hostile");
        let (_, answer) = leader.get("/readyz").expect("it answers");
        assert!(answer.contains(code), "{answer}");
    }
    assert_eq!(count(&leader, "a plugin is refused"), broken.len());
    let next = small("2.0");
    place.save("hostile.wasm", &next);
    place.runs(&leader, &next);
    assert_eq!(leader.metric("projector_module_loads_total"), Some(6.0));
    assert_eq!(place.ids(), "1.0");
    place.applies_an_event("hostile");
    assert_eq!(place.ids(), "1.0 2.0");
    leader.stop();
}

#[test]
fn plugins_are_swapped_between_batches_and_no_event_is_lost_or_applied_twice() {
    let place = Place::new("watch = true\non_change = \"continue\"");
    let names = ["order", "scheduling", "service-request"];
    let code: Vec<Vec<u8>> = names.iter().map(|name| shipped(name)).collect();
    for (name, bytes) in names.iter().zip(&code) {
        place.save(&format!("{name}.wasm"), bytes);
    }
    let leader = place.site.leader("a");
    let mut generator = Generator::new(71);
    for round in 1..=8 {
        place.site.append(&generator.lines(400), 50);
        for (name, bytes) in names.iter().zip(&code) {
            place.save(&format!("{name}.wasm"), &variant(bytes, round));
        }
        place.site.append(&generator.lines(400), 50);
        // Somewhere in the middle, whatever runs.
        place.site.rows_are_right();
    }
    let last = variant(&code[0], 8);
    place.runs(&leader, &last);
    place.site.all_is_right_at_the_head();
    place.records("order", &last);
    leader.stop();
}
