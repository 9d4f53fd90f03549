//! Standbys: an address that moves to one, its promotion, and an old primary that goes on as if nothing had happened.

use projector_testkit::domain::Generator;
use projector_testkit::proxy::{Close, Proxy};
use projector_testkit::site::{QUICK, Site};
use projector_testkit::{Installation, Mode, Server, ServerOptions};

use crate::support::*;

/// A primary with an empty database.
fn primary() -> Server {
    let installation =
        Installation::find_with("pg_basebackup").expect("pg_basebackup is installed");
    let server = Server::start(ServerOptions::default().installation(installation))
        .expect("a PostgreSQL server can be started");
    server
        .create_database("events")
        .expect("it takes databases");
    server
}

/// Waits until a standby has what the primary has.
fn catches_up(site: &Site, primary: &Server, standby: &Server) {
    let ask = |server: &Server, sql: &str| server.psql("events", sql).unwrap_or_default();
    let head = ask(primary, "select pg_current_wal_lsn()");
    let replayed = format!("select pg_last_wal_replay_lsn() >= '{head}'");
    until(site, "the standby has caught up", || {
        ask(standby, &replayed) == "t"
    });
}

#[test]
fn nobody_leads_on_a_standby_and_after_its_promotion_connected_replicas_go_on() {
    let primary = primary();
    let proxy = Proxy::before(&primary.url("events"), 121);
    let site = Site::at(programs(), proxy.url(), proxy.url(), QUICK);
    let mut generator = Generator::new(121);
    let (a, b) = (site.leader("a"), site.replica("b"));
    b.stands_by_eventually();
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    let standby = primary.basebackup().expect("a standby");
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    catches_up(&site, &primary, &standby);
    let before = term(&site);

    primary.stop(Mode::Immediate).expect("it stops");
    proxy.retarget(&standby.url("events"));
    for replica in [&a, &b] {
        replica.logs("PH0402");
        assert!(!replica.leads());
        let (code, body) = replica.get("/readyz").expect("it answers");
        assert!(code == 200 && body.contains("standby"), "{code} {body}");
    }
    let locks = "select count(*) from pg_locks where locktype = 'advisory'";
    assert_eq!(site.store(locks), "0");
    standby.promote().expect("it is promoted");
    until(&site, "one of them leads", || a.leads() || b.leads());
    assert!(term(&site) > before);
    ends_well(&site, &mut generator, &[&a, &b]);
}

#[test]
fn an_old_primary_that_one_replica_still_reaches_is_not_read() {
    let old = primary();
    let (near, far) = (
        Proxy::before(&old.url("events"), 122),
        Proxy::before(&old.url("events"), 123),
    );
    let site = Site::with_store(programs(), near.url(), QUICK);
    let mut generator = Generator::new(122);
    let a = site.replica("a");
    a.leads_eventually();
    site.begun();
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    drop(a);
    let new = old.basebackup().expect("a standby");
    catches_up(&site, &old, &new);
    // From here on there are two: nobody told the old one.
    new.promote().expect("it is promoted");
    near.retarget(&new.url("events"));
    near.close(Close::Reset);
    let far_url = far.url().to_owned();
    let a = site.leader("a");
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    let before = term(&site);
    // Written where nobody will look: the same positions as on the new one.
    let file = site.write("lost.ndjson", &Generator::new(1).lines(90));
    let mut append = site.program(&["append", &file]);
    let appended = append.env("ES_DATABASE_URL", old.url("events")).status();
    assert!(appended.is_ok_and(|status| status.success()));
    let b = site.replica_with("b", &["run"], &[("ES_DATABASE_URL", &far_url)]);
    b.logs("timeline");
    assert!(!b.leads());
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    assert_eq!(term(&site), before, "the old primary's lock led to a term");
    let stopped = site.model("select count(*) from projector.checkpoints where state = 'stopped'");
    assert_eq!(stopped, "0", "the old primary was read");
    // Brought to the new one it takes part.
    far.retarget(&new.url("events"));
    far.close(Close::Reset);
    b.stands_by_eventually();
    ends_well(&site, &mut generator, &[&b, &a]);
}
