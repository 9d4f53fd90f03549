//! A standby is ready, says that it does not lead, and who does.

use projector_testkit::site::{Databases, QUICK, Site};

use crate::support::programs;

#[test]
fn a_standby_is_ready_and_says_who_leads() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let leader = site.leader("first");
    let standby = site.replica("second");
    standby.ready_eventually();
    site.eventually("it knows the leader", || {
        let (_, body) = standby.get("/readyz")?;
        body.contains("first").then_some(())
    });
    for (path, of_leader, of_standby) in [
        ("/livez", 200, 200),
        ("/readyz", 200, 200),
        ("/startupz", 200, 200),
        ("/leaderz", 200, 503),
        ("/lagz?events=1000000", 200, 503),
        ("/metrics", 200, 200),
    ] {
        assert_eq!(leader.code(path), of_leader, "{path} of the leader");
        assert_eq!(standby.code(path), of_standby, "{path} of the standby");
    }
    assert_eq!(leader.metric("projector_leader"), Some(1.0));
    assert_eq!(standby.metric("projector_leader"), Some(0.0));
    let says = site.status();
    assert_eq!(says["leader"]["node"], "first", "{says}");
    let pid = format!(
        "select application_name from pg_stat_activity where pid = {}",
        says["leader"]["backend_pid"]
    );
    assert_eq!(site.store(&pid), "projector/default/first/lock");
    leader.stop();
    standby.leads_eventually();
    site.eventually("status names the new leader", || {
        (site.status()["leader"]["node"] == "second").then_some(())
    });
}
