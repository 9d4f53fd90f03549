//! The promises of a private server, kept against a real one.

use projector_testkit::{Installation, Mode, Result, Server, ServerOptions};

#[test]
fn a_server_starts_empty_with_the_settings_of_a_test_server() -> Result<()> {
    let server = Server::start(ServerOptions::default().setting("work_mem", "5MB"))?;
    let show = |name: &str| server.psql("postgres", &format!("show {name}"));
    assert_eq!(show("fsync")?, "off");
    assert_eq!(show("max_connections")?, "200");
    assert_eq!(show("max_prepared_transactions")?, "20");
    assert_eq!(show("server_encoding")?, "UTF8");
    assert_eq!(show("work_mem")?, "5MB");
    assert_eq!(show("port")?, server.port().to_string());
    assert_eq!(
        server.psql(
            "postgres",
            "select count(*) from pg_class where relnamespace = 'public'::regnamespace"
        )?,
        "0"
    );
    assert!(
        server
            .socket_dir()
            .join(format!(".s.PGSQL.{}", server.port()))
            .exists()
    );
    Ok(())
}

#[test]
fn every_installed_version_starts() -> Result<()> {
    for installation in Installation::all() {
        let major = installation.major();
        let server = Server::start(ServerOptions::default().installation(installation))?;
        let answer = server.psql(
            "postgres",
            "select current_setting('server_version_num')::int / 10000",
        )?;
        assert_eq!(answer, major.to_string());
    }
    Ok(())
}

#[test]
fn an_error_in_a_script_ends_it_and_is_told() -> Result<()> {
    let server = Server::start(ServerOptions::default())?;
    let script = "create table a (x int); insert into a values (1); select broken; insert into a values (2);";
    let error = server
        .psql("postgres", script)
        .expect_err("there is no column `broken`");
    assert!(
        error
            .to_string()
            .contains("column \"broken\" does not exist"),
        "{error}"
    );
    assert_eq!(server.psql("postgres", "select x from a")?, "1");
    Ok(())
}

#[test]
fn databases_are_created_and_copied_whatever_their_name() -> Result<()> {
    let server = Server::start(ServerOptions::default())?;
    server.create_database("odd \"name\"")?;
    server.psql("odd \"name\"", "create table t as select 7 as x")?;
    server.create_database_from_template("copy", "odd \"name\"")?;
    assert_eq!(
        server.psql("copy", "select x, current_database() from t")?,
        "7|copy"
    );
    Ok(())
}

#[test]
fn what_was_committed_is_there_after_every_way_to_stop() -> Result<()> {
    let server = Server::start(ServerOptions::default())?;
    let (port, first) = (server.port(), server.pid());
    server.psql("postgres", "create table t (x int)")?;
    for (number, mode) in [Mode::Smart, Mode::Fast, Mode::Immediate]
        .into_iter()
        .enumerate()
    {
        server.psql("postgres", &format!("insert into t values ({number})"))?;
        server.stop(mode)?;
        assert_eq!(server.pid(), None);
        assert!(
            server.psql("postgres", "select 1").is_err(),
            "a stopped server answers nothing"
        );
        assert!(server.stop(mode).is_err(), "it is stopped already");
        server.start_again()?;
        assert!(server.start_again().is_err(), "it runs already");
    }
    assert_eq!(
        server.psql(
            "postgres",
            "select string_agg(x::text, ',' order by x) from t"
        )?,
        "0,1,2"
    );
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), first);
    server.restart(Mode::Immediate)?;
    assert!(
        server.log_tail().contains("was not properly shut down"),
        "{}",
        server.log_tail()
    );
    Ok(())
}

#[test]
fn a_server_that_cannot_start_shows_the_end_of_its_log() {
    let error = Server::start(ServerOptions::default().setting("shared_buffers", "nonsense"));
    let error = error.expect_err("nonsense is no size").to_string();
    assert!(
        error.contains("ended while starting") && error.contains("shared_buffers"),
        "{error}"
    );
}

#[test]
fn dropping_it_stops_it_and_removes_its_folder() -> Result<()> {
    let server = Server::start(ServerOptions::default())?;
    let (folder, port) = (server.socket_dir(), server.port());
    assert!(folder.exists());
    drop(server);
    assert!(!folder.exists());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    Ok(())
}
