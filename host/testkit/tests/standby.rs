//! A standby follows its primary and can take over.

use std::{
    thread,
    time::{Duration, Instant},
};

use projector_testkit::{Installation, Mode, Result, Server, ServerOptions};

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_standby_follows_and_takes_over() -> Result<()> {
    let installation = Installation::find_with("pg_basebackup")?;
    let primary = Server::start(ServerOptions::default().installation(installation))?;
    primary.psql("postgres", "create table t as select 1 as x")?;
    let standby = primary.basebackup()?;
    assert_ne!(standby.port(), primary.port());
    primary.psql("postgres", "insert into t values (2)")?;
    eventually(|| {
        standby
            .psql("postgres", "select count(*) from t")
            .is_ok_and(|rows| rows == "2")
    });

    let error = standby
        .psql("postgres", "insert into t values (3)")
        .expect_err("a standby is read-only");
    assert!(
        error.to_string().contains("read-only transaction"),
        "{error}"
    );
    primary.stop(Mode::Immediate)?;
    standby.promote()?;
    standby.psql("postgres", "insert into t values (3)")?;
    assert_eq!(standby.psql("postgres", "select sum(x) from t")?, "6");
    Ok(())
}

fn eventually(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(
            begin.elapsed() < PATIENCE,
            "it did not happen within {} s",
            PATIENCE.as_secs()
        );
        thread::sleep(Duration::from_millis(20));
    }
}
