//! What a replica refuses to start with, and how it says so.

use projector_testkit::site::{Databases, QUICK, Site};

use crate::support::programs;

#[test]
fn an_unmigrated_database_is_refused_with_the_command_to_run() {
    let site = Site::unmigrated(programs(), Databases::Two, QUICK);
    let replica = site.replica("a");
    assert_eq!(replica.exit_code(), 78, "{}", replica.log());
    assert!(replica.log().contains("migrate up"), "{}", replica.log());
    assert_eq!(site.run(&["status"]).code, 78);
    site.migrate();
    site.leader("b").stop();
}

#[test]
fn a_wrong_password_a_missing_database_and_an_unknown_role_end_with_69() {
    let site = Site::shared(programs(), Databases::One, QUICK);
    let (url, _) = site.urls();
    let server = url
        .rsplit_once('/')
        .map(|(server, _)| server)
        .expect("it names a database");
    let missing = format!("{server}/no_such_database");
    let address = server
        .rsplit_once('@')
        .map(|(_, address)| address)
        .expect("it names a user");
    let unknown = format!("postgresql://nobody_we_know:secret-word@{address}/postgres");
    for (what, url) in [("missing database", &missing), ("unknown role", &unknown)] {
        for variable in ["ES_DATABASE_URL", "DATABASE_URL"] {
            let replica = site.replica_with("a", &["run"], &[(variable, url)]);
            assert_eq!(
                replica.exit_code(),
                69,
                "{what} in {variable}: {}",
                replica.log()
            );
            assert!(!replica.log().contains("secret-word"), "{}", replica.log());
        }
    }
}

#[test]
fn every_command_names_a_missing_privilege_a_read_only_server_and_missing_tables() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    site.leader("a").stop();
    let (_, rows) = site.urls();
    // A role that is always there and was granted nothing here.
    let denied = format!("{rows}?options=-c%20role%3Dpg_monitor");
    let read_only = format!("{rows}?options=-c%20default_transaction_read_only%3Don");
    let asking: [&[&str]; 4] = [
        &["status"],
        &["wait", "--until-caught-up"],
        &["pause", "order"],
        &["leader", "resign"],
    ];
    let check = |arguments: &[&str], url: &str, code: &str| {
        let mut program = site.program(arguments);
        let output = program.env("DATABASE_URL", url).output();
        let output = output.expect("the program can be started");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(78), "{arguments:?}: {told}");
        assert!(told.contains(code), "{arguments:?}: {told}");
    };
    let _leader = site.leader("b");
    for arguments in asking {
        check(arguments, &denied, "PH0208");
    }
    check(&["pause", "order"], &read_only, "PH0205");
    let unmigrated = Site::unmigrated(programs(), Databases::Two, QUICK);
    let (_, empty) = unmigrated.urls();
    for arguments in asking {
        check(arguments, empty, "PH0202");
    }
}

#[test]
fn a_read_only_read_model_is_waited_for_at_the_start() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let database = site.model("select current_database()");
    let read_only = |value: &str| {
        site.store(&format!(
            "alter database \"{database}\" set default_transaction_read_only = {value}"
        ));
    };
    read_only("on");
    let replica = site.replica("a");
    site.eventually("it says what it waits for", || {
        let (code, answer) = replica.get("/readyz")?;
        (code == 503 && answer.contains("read-only")).then_some(())
    });
    read_only("off");
    replica.leads_eventually();
    replica.stop();
}
