//! What happens to the leader, and which bound holds for it.

use std::{thread, time::Duration};

use anyhow::{Context, Result, ensure};
use projector_testkit::{
    Mode,
    namespace::{Lost, Namespace},
    proxy::{Link, Proxy, Silence},
    site::{Replica, Site},
};

/// From when a bound counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// From what happened to the leader.
    Fault,
    /// From the moment at which the lock was free.
    Release,
    /// From the moment at which the server took connections again.
    Server,
}

impl From {
    /// For the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Release => "release",
            Self::Server => "server up",
        }
    }
}

/// A leader, its networks, and whoever is there to take over.
pub struct Scene<'a> {
    pub site: &'a Site,
    pub leader: &'a Replica<'a>,
    pub networks: &'a [Proxy; 2],
    /// Where the leader is, if the case wants that.
    pub namespace: Option<&'a Namespace>,
    pub leader_pid: i32,
}

/// One row of the table.
pub struct Case {
    pub name: &'static str,
    /// The leader is in a network namespace of its own.
    pub apart: bool,
    /// Events arrive all the time.
    pub busy: bool,
    pub from: From,
    pub bound: Duration,
    /// Lets it happen.
    pub strike: fn(&Scene<'_>) -> Result<()>,
}

/// The next try, at most 0.3 s away, and the claim.
const NEXT_TRY: Duration = Duration::from_millis(300 + CLAIM_MILLIS);

/// A claim on a busy machine.
const CLAIM_MILLIS: u64 = 200;

/// The server's lease of 6 s, and half a second.
const LEASE: Duration = Duration::from_millis(6_500);

/// All rows, the quick ones first.
pub const ALL: [Case; 10] = [
    Case {
        name: "SIGTERM",
        apart: false,
        busy: true,
        from: From::Release,
        bound: Duration::from_millis(100),
        strike: |scene| {
            scene.leader.terminate();
            Ok(())
        },
    },
    Case {
        name: "leader resign",
        apart: false,
        busy: true,
        from: From::Release,
        bound: Duration::from_millis(100),
        strike: |scene| {
            let answer = scene.site.run(&["leader", "resign", "--timeout", "20s"]);
            ensure!(answer.code == 0, "`leader resign` failed: {}", answer.error);
            Ok(())
        },
    },
    Case {
        name: "kill -9",
        apart: false,
        busy: true,
        from: From::Fault,
        bound: NEXT_TRY,
        strike: |scene| {
            scene.leader.kill();
            Ok(())
        },
    },
    Case {
        name: "lock session ended",
        apart: false,
        busy: true,
        from: From::Fault,
        bound: NEXT_TRY,
        strike: |scene| {
            let pid = scene.leader_pid;
            let ended = scene
                .site
                .store(&format!("select pg_terminate_backend({pid})"));
            ensure!(ended == "t", "there was no session {pid}");
            Ok(())
        },
    },
    Case {
        name: "PostgreSQL restarted",
        apart: false,
        busy: false,
        from: From::Server,
        bound: Duration::from_millis(1_000 + 250 + CLAIM_MILLIS),
        strike: |scene| Ok(scene.site.server().restart(Mode::Fast)?),
    },
    Case {
        name: "SIGSTOP",
        apart: false,
        busy: true,
        from: From::Fault,
        bound: LEASE,
        strike: |scene| {
            scene.leader.freeze();
            Ok(())
        },
    },
    Case {
        name: "network silent, socket idle",
        apart: false,
        busy: false,
        from: From::Fault,
        bound: LEASE,
        strike: silence,
    },
    Case {
        name: "network silent, data in flight",
        apart: false,
        busy: true,
        from: From::Fault,
        bound: LEASE,
        strike: silence,
    },
    Case {
        name: "host vanished, socket idle",
        apart: true,
        busy: false,
        from: From::Fault,
        bound: LEASE,
        strike: vanish,
    },
    Case {
        name: "host vanished, data in flight",
        apart: true,
        busy: true,
        from: From::Fault,
        bound: LEASE,
        strike: vanish,
    },
];

/// Long enough that the cut hits no statement of the lock session, or the idle socket is none.
fn between_heartbeats() {
    thread::sleep(Duration::from_millis(20));
}

fn vanish(scene: &Scene<'_>) -> Result<()> {
    between_heartbeats();
    let namespace = scene.namespace.context("the leader has no namespace")?;
    namespace.cut(Lost::Both);
    Ok(())
}

fn silence(scene: &Scene<'_>) -> Result<()> {
    between_heartbeats();
    for network in scene.networks {
        network.link(Link::default().silent(Silence::Both));
    }
    Ok(())
}
