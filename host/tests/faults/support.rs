//! A site whose replicas are reached through networks that fail, and how every test ends.

use std::time::{Duration, Instant};

use projector_testkit::domain::Generator;
use projector_testkit::proxy::Proxy;
use projector_testkit::site::{Databases, Programs, QUICK, Replica, Session, Site};

/// As `QUICK` says.
pub const RETRY_INTERVAL: Duration = Duration::from_millis(100);
pub const LOCAL_LEASE: Duration = Duration::from_millis(1_500);
pub const SERVER_LEASE: Duration = Duration::from_millis(2_500);

/// What a loaded machine may add to a measured time.
pub const SLACK: Duration = Duration::from_secs(1);

/// The program with the shipped plugins and the guest that counts.
pub fn programs() -> Programs {
    crate::programs::programs().counting()
}

/// Both databases in one, on the server that all tests share.
pub fn site() -> Site {
    Site::shared(programs(), Databases::One, QUICK)
}

/// A replica that reaches both databases through this network.
pub fn behind<'a>(site: &'a Site, proxy: &Proxy, node: &str) -> Replica<'a> {
    let url = proxy.url();
    let variables = [("ES_DATABASE_URL", url), ("DATABASE_URL", url)];
    site.replica_with(node, &["run"], &variables)
}

/// The same, and it leads.
pub fn leads_behind<'a>(site: &'a Site, proxy: &Proxy, node: &str) -> Replica<'a> {
    let replica = behind(site, proxy, node);
    replica.leads_eventually();
    site.begun();
    replica
}

/// The number of the term that leads now.
pub fn term(site: &Site) -> i64 {
    site.eventually("somebody leads", || {
        site.status()["leader"]["term"].as_i64()
    })
}

/// How long it takes until something is so.
pub fn until(site: &Site, what: &str, mut look: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    site.eventually(what, || look().then_some(()));
    begun.elapsed()
}

/// Waits for a batch of this node that waits for a lock inside its transaction.
pub fn a_batch_waits(site: &Site, node: &str) {
    let waiting = format!(
        "select count(*) > 0 from pg_stat_activity where wait_event_type = 'Lock' \
         and application_name like '%/{node}/write' and datname = current_database()"
    );
    site.eventually("a batch waits for a lock", || {
        (site.model(&waiting) == "t").then_some(())
    });
}

/// Appends some of the domain's events in an open session, whose transaction is the caller's business.
pub fn append_in(session: &mut Session, generator: &mut Generator, count: usize) {
    for _ in 0..count {
        let draft = generator.draft();
        let events = serde_json::json!([{ "type": draft.kind, "data": draft.data }]);
        session.run(&format!(
            "select from event_store.append($q${}$q$, null, $q${events}$q$::jsonb)",
            draft.stream
        ));
    }
}

/// The end of every test: new events reach the rows, rows equal the fold, and nothing is left after a shutdown.
pub fn ends_well(site: &Site, generator: &mut Generator, replicas: &[&Replica<'_>]) {
    site.append(&generator.lines(40), 20);
    site.all_is_right_at_the_head();
    for replica in replicas {
        replica.stop();
    }
    site.eventually("no session and no lock is left", || {
        (site.remains() == (0, 0)).then_some(())
    });
}
