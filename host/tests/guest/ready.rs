//! Instances that are made before their batch is there.

use projector_host::guest::lookups::Answers;
use projector_host::guest::writes::Keys;
use projector_host::guest::{Category, Guest, Limits, LookupFailure, Lookups, NoLookups};
use projector_testkit::guests::{from_text, text};

use crate::fixture::{compile, events, guest, on_thread, project, project_with};

/// Answers nothing, and tells that way that it was asked.
struct Asked;

impl Lookups for Asked {
    fn get(&mut self, _keys: &Keys) -> Result<Answers, LookupFailure> {
        Err(LookupFailure::Transient("asked".into()))
    }
}

fn is_made_ahead(guest: &Guest) -> bool {
    let guest = guest.clone();
    on_thread(move || guest.ready("{}", &Limits::default()).is_some())
}

#[test]
fn an_instance_made_ahead_serves_one_batch_and_gives_what_any_other_gives() {
    for name in ["base", "counts-calls", "leftovers", "json"] {
        let guest = guest(name);
        let limits = Limits::default();
        let fresh = project(&guest, events(2), &limits).expect("gets through");
        let ahead = on_thread(move || {
            // The second one is made while the first one is still there.
            let ready = [(); 2].map(|()| guest.ready("{}", &limits));
            ready.map(|ready| {
                assert!(ready.is_some(), "{name} is made ahead");
                guest
                    .project(ready, "{}", &events(2), Box::new(NoLookups), &limits)
                    .expect("gets through")
            })
        });
        for output in ahead {
            assert_eq!(
                format!("{:?}", output.writes),
                format!("{:?}", fresh.writes)
            );
            assert_eq!(output.fuel, fresh.fuel, "{name}: describe counts too");
            assert_eq!(output.memory_peak, fresh.memory_peak);
        }
    }
}

#[test]
fn an_instance_made_ahead_asks_through_its_batch() {
    let guest = guest("lookup-once");
    let limits = Limits::default();
    let fresh = project_with(&guest, events(1), Box::new(Asked), &limits).expect_err("asked");
    let error = on_thread(move || {
        let ready = guest.ready("{}", &limits);
        assert!(ready.is_some());
        guest
            .project(ready, "{}", &events(1), Box::new(Asked), &limits)
            .expect_err("asked")
    });
    assert_eq!(error, fresh);
    assert!(error.message.contains("asked"), "{error}");
}

#[test]
fn only_a_small_guest_that_starts_well_and_has_no_clock_is_made_ahead() {
    assert!(is_made_ahead(&guest("base")));
    // Its clock is its batch's, also while it starts.
    assert!(!is_made_ahead(&guest("wasi")));
    let with_memory = |pages: usize| {
        let memory = |pages| format!("(memory (export \"memory\") {pages})");
        compile(&from_text(
            &text("base").replace(&memory(1), &memory(pages)),
        ))
    };
    assert!(is_made_ahead(&with_memory(64)));
    assert!(!is_made_ahead(&with_memory(65)));
    assert!(!is_made_ahead(&guest("trap-in-start")));
}

#[test]
fn what_fails_ahead_is_told_by_the_batch() {
    let guest = guest("trap-in-describe");
    let error = on_thread(move || {
        let limits = Limits::default();
        let ready = guest.ready("{}", &limits);
        assert!(ready.is_none());
        guest
            .project(ready, "{}", &events(1), Box::new(NoLookups), &limits)
            .expect_err("a trap")
    });
    assert_eq!(error.category, Category::Trap, "{error}");
}
