//! A server goes with its process, even if that process is killed.

use std::{
    env,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use projector_testkit::{Result, Server, ServerOptions};

const PATIENCE: Duration = Duration::from_secs(30);
const ROLE: &str = "PROJECTOR_TESTKIT_VICTIM";

/// Runs itself a second time as the victim, kills that, and looks whether anything is left.
#[test]
fn a_killed_process_leaves_no_server_and_no_folder() -> Result<()> {
    if env::var_os(ROLE).is_some() {
        return be_the_victim();
    }
    let own_name = "a_killed_process_leaves_no_server_and_no_folder";
    let mut victim = Command::new(env::current_exe().expect("a test program has a path"))
        .args(["--exact", "--nocapture", own_name])
        .env(ROLE, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test program starts a second time");
    let lines = BufReader::new(victim.stdout.take().expect("a pipe was asked for")).lines();
    let line = lines
        .map_while(std::result::Result::ok)
        .find(|line| line.contains("server in "));
    let line = line.expect("the victim tells its folder and port");
    let (folder, port) = line
        .split("server in ")
        .nth(1)
        .and_then(|rest| rest.split_once(" port "))
        .expect("both");
    let port: u16 = port.parse().expect("a number");
    assert!(
        Path::new(folder).exists() && std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    );

    victim.kill().expect("the victim can be killed");
    victim.wait().expect("the victim is gone");
    let begin = Instant::now();
    while Path::new(folder).exists() || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
        assert!(
            begin.elapsed() < PATIENCE,
            "the server in {folder} outlived its process"
        );
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn be_the_victim() -> Result<()> {
    let server = Server::start(ServerOptions::default())?;
    println!(
        "server in {} port {}",
        server.socket_dir().display(),
        server.port()
    );
    loop {
        thread::park();
    }
}
