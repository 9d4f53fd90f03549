//! An event that ends the whole process: found, blamed, and treated as the policy says.

use projector_testkit::site::Site;

use crate::support::{BY_TYPE, caught_up, letters, numbers, site_by_type, typed};

/// The plugin says so before it never returns.
const MARK: &str = "about to end the process";

/// Long enough that the test ends the process, not the host the call.
const PATIENT: &str = "[plugins.limits]\nfuel_max = 900000000000\ncall_timeout = \"300s\"\n";

/// Ends processes at the event until one survives it; says how many ended.
fn deaths(site: &Site) -> usize {
    for death in 0..12 {
        let replica = site.replica(&format!("life-{death}"));
        let dies = site.eventually("it comes to the event, or past it", || {
            if replica.log().contains(MARK) {
                return Some(true);
            }
            let crashed = site.model(
                "select (select count(*) from projector.dead_letters where category = 'crash')
                      + (select count(*) from projector.checkpoints where failure_category = 'crash')",
            );
            (crashed == "1").then_some(false)
        });
        replica.kill();
        if !dies {
            return death;
        }
    }
    site.fail("the event is never blamed");
}

fn run(policy: &str) -> (Site, tempfile::TempDir, usize) {
    let config = format!(
        "{PATIENT}[defaults]\non_error = \"{policy}\"\nretry = {{ attempts_max = 1, initial = \"10ms\", max = \"20ms\" }}"
    );
    let (site, folder) = site_by_type(&config);
    let leader = site.leader("before");
    site.append(&typed("one", &["Good"]), 500);
    caught_up(&site, BY_TYPE);
    leader.kill();
    drop(leader);
    site.append(&typed("two", &["Killer", "Good"]), 500);
    site.append(&typed("one", &["Good"; 5]), 500);
    let deaths = deaths(&site);
    // Three in whole batches, then as many attempts as were begun for this event alone.
    assert!((4..=6).contains(&deaths), "{deaths}");
    (site, folder, deaths)
}

#[test]
fn with_skip_it_is_passed_over_and_the_rest_goes_on() {
    let (site, _folder, _) = run("skip");
    let _last = site.leader("last");
    caught_up(&site, BY_TYPE);
    let found = letters(&site, BY_TYPE);
    assert_eq!(numbers(&found, "position"), [2], "{found:?}");
    assert_eq!(found[0]["category"], "crash");
    assert_eq!(site.model("select count(*) from read_model.events"), "7");
}

#[test]
fn with_park_its_stream_waits_and_a_retry_that_kills_again_is_given_up() {
    let (site, _folder, _) = run("park");
    let last = site.leader("last");
    caught_up(&site, BY_TYPE);
    let found = letters(&site, BY_TYPE);
    assert_eq!(numbers(&found, "position"), [2, 3], "{found:?}");
    let id = numbers(&found, "id")[0].to_string();
    site.runs(&["dead-letter", "retry", &id]);
    last.logs(MARK);
    last.kill();
    for death in 0..2 {
        let replica = site.leader(&format!("retry-{death}"));
        replica.logs(MARK);
        replica.kill();
    }
    let survivor = site.leader("survivor");
    survivor.logs("a dead letter did not pass");
    assert!(!survivor.log().contains(MARK));
    caught_up(&site, BY_TYPE);
    assert_eq!(letters(&site, BY_TYPE)[0]["category"], "crash");
}

#[test]
fn with_stop_its_projection_stops_alone() {
    let (site, _folder, _) = run("stop");
    let _last = site.leader("last");
    let status = site.status_of(BY_TYPE);
    assert_eq!(status["failure"]["category"], "crash", "{status}");
    assert_eq!(status["failure"]["position"], 2, "{status}");
    caught_up(&site, "order");
    site.runs(&["skip", BY_TYPE, "--position", "2"]);
    caught_up(&site, BY_TYPE);
    assert_eq!(site.model("select count(*) from read_model.events"), "7");
}
