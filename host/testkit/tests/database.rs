//! Fresh databases for tests, from the shared server of this test program or from the one in the environment.

use projector_testkit::{Result, test_database};

#[test]
fn two_databases_do_not_see_each_other() -> Result<()> {
    let (one, two) = (test_database()?, test_database()?);
    assert_ne!(one.name(), two.name());
    one.psql("create table t (x int)")?;
    assert_eq!(one.psql("select to_regclass('t') is not null")?, "t");
    assert_eq!(two.psql("select to_regclass('t') is not null")?, "f");
    assert_eq!(two.psql("select current_database()")?, two.name());
    assert!(two.url().ends_with(two.name()));
    Ok(())
}

#[test]
fn a_copy_has_the_same_content_and_goes_its_own_way() -> Result<()> {
    let original = test_database()?;
    original.psql("create table t as select 1 as x")?;
    let copy = original.copy()?;
    copy.psql("update t set x = 2")?;
    assert_eq!(copy.psql("select x from t")?, "2");
    assert_eq!(original.psql("select x from t")?, "1");
    Ok(())
}

#[test]
fn a_dropped_value_drops_its_database_even_while_someone_is_connected() -> Result<()> {
    let (observer, gone) = (test_database()?, test_database()?);
    let (name, url) = (gone.name().to_owned(), gone.url().to_owned());
    let count = format!("select count(*) from pg_stat_activity where datname = '{name}'");
    let client = std::thread::spawn(move || {
        let script = ["-X", "-q", "-c", "select pg_sleep(600)", &url];
        std::process::Command::new("psql").args(script).output()
    });
    while observer.psql(&count)? == "0" {
        std::thread::yield_now();
    }
    drop(gone);
    assert_eq!(
        observer.psql(&format!(
            "select count(*) from pg_database where datname = '{name}'"
        ))?,
        "0"
    );
    let client = client
        .join()
        .expect("the client thread ends")
        .expect("psql runs");
    assert!(!client.status.success(), "the client was cut off");
    Ok(())
}
