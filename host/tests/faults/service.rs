//! What a service manager hears on its socket: READY, STATUS, WATCHDOG while it lives, STOPPING.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use projector_testkit::domain::Generator;
use projector_testkit::site::Site;

use crate::support::*;

/// systemd's side of the socket.
struct Manager {
    socket: UnixDatagram,
    path: String,
    heard: Vec<String>,
}

impl Manager {
    fn listen(site: &Site) -> Self {
        let path = site.write("notify", "");
        std::fs::remove_file(&path).expect("it was just made");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_nonblocking(true).expect("it can");
        Self {
            socket,
            path,
            heard: Vec::new(),
        }
    }

    /// Lines that have arrived since the last look.
    fn news(&mut self) -> Vec<String> {
        let mut bytes = [0; 4096];
        let mut news = Vec::new();
        while let Ok(length) = self.socket.recv(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
            news.extend(text.lines().map(str::to_owned));
        }
        self.heard.extend(news.iter().cloned());
        news
    }

    fn hears(&mut self, site: &Site, line: &str) {
        site.eventually(&format!("the manager hears {line}"), || {
            self.news();
            self.heard.iter().any(|one| one == line).then_some(())
        });
    }
}

#[test]
fn a_service_manager_hears_ready_status_watchdog_and_stopping() {
    const WATCHDOG: Duration = Duration::from_secs(1);
    let site = site();
    let mut generator = Generator::new(211);
    let other = site.leader("other");
    let mut manager = Manager::listen(&site);
    let limit = WATCHDOG.as_micros().to_string();
    let path = manager.path.clone();
    let variables = [("NOTIFY_SOCKET", &*path), ("WATCHDOG_USEC", &*limit)];
    let replica = site.replica_with("a", &["run"], &variables);
    // A standby is ready.
    manager.hears(&site, "READY=1");
    manager.hears(&site, "STATUS=follower");
    assert_eq!(
        manager
            .heard
            .iter()
            .filter(|line| *line == "READY=1")
            .count(),
        1
    );
    other.stop();
    manager.hears(&site, "STATUS=leading");
    site.append(&generator.lines(40), 20);
    site.all_is_right_at_the_head();
    for _ in 0..4 {
        manager.news();
        let silence = until(&site, "the watchdog is fed", || {
            manager.news().iter().any(|line| line == "WATCHDOG=1")
        });
        assert!(silence < WATCHDOG, "silent for {silence:?}");
    }
    // A process that hangs feeds nothing.
    replica.freeze();
    manager.news();
    let begun = std::time::Instant::now();
    until(&site, "the limit has passed", || begun.elapsed() > WATCHDOG);
    assert!(manager.news().is_empty(), "a frozen process spoke");
    replica.thaw();
    until(&site, "it is fed again", || !manager.news().is_empty());
    assert!(!manager.heard.iter().any(|line| line == "STOPPING=1"));
    replica.terminate();
    manager.hears(&site, "STOPPING=1");
    assert_eq!(replica.exit_code(), 0);
}
