//! A standby that stands by for too long says so: in its log, its metrics and its readiness, with who is in the way.

use projector_testkit::site::{Databases, QUICK, Site};
use serde_json::Value;

use crate::support::*;

fn limited() -> Site {
    let leader = format!("{QUICK}denied_limit = \"700ms\"\n");
    Site::shared(programs(), Databases::One, &leader)
}

#[test]
fn a_leader_of_the_same_group_is_named_with_host_pid_and_time() {
    let site = limited();
    let leader = site.leader("first");
    let standby = site.replica("second");
    standby.stands_by_eventually();
    standby.logs("for longer than [leader] denied_limit");
    until(&site, "the metric says so", || {
        standby.metric("projector_leader_denied_overdue") == Some(1.0)
    });
    let says = site.status();
    let denied = site.eventually("readiness says so", || {
        let (code, body) = standby.get("/readyz")?;
        let answer: Value = serde_json::from_str(&body).ok()?;
        (code == 200 && answer["denied"]["overdue"] == true).then(|| answer["denied"].clone())
    });
    let holder = denied["holder"].as_str().unwrap_or_default();
    for part in [
        "first".to_owned(),
        says["leader"]["host"].as_str().unwrap_or("?").to_owned(),
        format!("pid {}", says["leader"]["backend_pid"]),
        "since 2".to_owned(),
    ] {
        assert!(holder.contains(&part), "{part} is not in {denied}");
        let log = standby.log();
        let warning = log.lines().find(|line| line.contains("denied_limit"));
        let warning = warning.unwrap_or_default();
        assert!(
            warning.contains("WARN") && warning.contains(&part),
            "{warning}"
        );
    }
    assert_eq!(leader.metric("projector_leader_denied_overdue"), Some(0.0));
    leader.kill();
    standby.leads_eventually();
    until(&site, "a leader is not overdue", || {
        standby.metric("projector_leader_denied_overdue") == Some(0.0)
    });
}

#[test]
fn another_program_that_holds_the_lock_is_named() {
    let site = limited();
    let mut other = site.session();
    let pid = other.run("set application_name = 'nightly import'; select pg_backend_pid()");
    // `PICOCQRS`.
    other.run("select pg_advisory_lock(5785229204044993107)");
    let replica = site.replica("a");
    replica.logs("PH0405");
    replica.logs("for longer than [leader] denied_limit");
    let (code, body) = replica.get("/readyz").expect("it answers");
    assert_eq!(code, 200, "{body}");
    assert!(
        body.contains("nightly import") && body.contains(&format!("pid {pid}")),
        "{body}"
    );
    other.run("select pg_advisory_unlock_all()");
    replica.leads_eventually();
    replica.stop();
}
