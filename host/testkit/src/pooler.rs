//! A real PgBouncer before a server, where the distribution has one.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{account::Account, skip::first_of, tool};

const PROGRAM: [&str; 3] = [
    "/usr/sbin/pgbouncer",
    "/usr/bin/pgbouncer",
    "/usr/local/bin/pgbouncer",
];

const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A pooler that ends with its value.
#[derive(Debug)]
pub struct Pooler {
    child: Child,
    url: String,
    // Dropped last.
    _folder: TempDir,
}

impl Pooler {
    /// Starts one in this mode (`transaction`, `session`, `statement`) before the server in the URL. Nothing where
    /// there is no PgBouncer.
    ///
    /// # Panics
    /// When it is there and does not start.
    pub fn start(url: &str, mode: &str) -> Option<Self> {
        let program = first_of(&PROGRAM)?;
        let (server, range) = crate::url::authority(url).expect("the URL names host and port");
        let (host, server_port) = server.split_once(':').expect("it has a port");
        let folder = tempfile::Builder::new()
            .prefix("projector-pooler-")
            .tempdir()
            .expect("there is room");
        let port = free_port();
        let place = folder.path().to_path_buf();
        let at = |name: &str| place.join(name).display().to_string();
        let config = format!(
            "[databases]\n* = host={host} port={server_port} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = 20\n\
             logfile = {}\npidfile = {}\n",
            at("log"),
            at("pid")
        );
        fs::write(at("ini"), config).expect("there is room");
        // It refuses root as the server does.
        let account = Account::pick().expect("there is an account");
        for path in [place.clone(), place.join("ini")] {
            account.own(&path).expect("root may");
        }
        let mut command = Command::new(program);
        command.arg("--quiet").arg(at("ini"));
        account.apply(&mut command);
        let child = tool::clean_environment(&mut command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("pgbouncer can be started");
        let mut url = url.to_owned();
        url.replace_range(range, &format!("127.0.0.1:{port}"));
        let pooler = Self {
            child,
            url,
            _folder: folder,
        };
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let log = fs::read_to_string(at("log")).unwrap_or_default();
            assert!(
                begun.elapsed() < START_TIMEOUT,
                "pgbouncer is silent: {log}"
            );
            thread::sleep(Duration::from_millis(20));
        }
        Some(pooler)
    }

    /// The URL that leads through it.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    listener.local_addr().expect("it listens").port()
}
