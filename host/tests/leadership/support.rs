//! Replicas, the database they meet in, and waiting for what must come.

use std::sync::Arc;
use std::time::Duration;

use projector_host::advisory_lock::key::Key;
use projector_host::database::identifier::Identifier;
use projector_host::database::session::{Database, Purpose};
use projector_host::leadership::clock::BootClock;
use projector_host::leadership::role::{Cause, Timing};
use projector_host::leadership::session::{Session, Site};
use projector_host::leadership::term::{Claimant, Watcher};
use projector_host::leadership::{Denied, Handle, Leadership, Load, Options, Role, Term, spawn};
use projector_host::telemetry::metrics::LeaderMetrics;
use sqlx::postgres::PgConnection;
use tokio_util::sync::CancellationToken;

/// Longest wait for anything that must happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub const KEY: Key = Key::Single(0x5049_434F_4351_5253);

const CONTROL_SQL: &str = include_str!("../../../migrations/read_model/0001_control.sql");

/// The control tables, in a schema of this name.
pub fn control_sql(schema: &str) -> String {
    format!(
        "CREATE SCHEMA {schema}; {}",
        CONTROL_SQL.replace("{control}", schema)
    )
}

/// Short leases, so that a test of a lost leader takes seconds.
pub fn quick() -> Timing {
    Timing {
        retry_interval: Duration::from_millis(100),
        heartbeat_interval: Duration::from_millis(300),
        local_lease: Duration::from_millis(1_500),
        server_lease: Duration::from_millis(2_500),
        cooldown: Duration::from_millis(1_500),
        refusal_retry: Duration::from_millis(500),
        ..Timing::default()
    }
}

pub fn control() -> Identifier {
    Identifier::new("projector").expect("the name is fine")
}

pub fn database(url: &str, group: &str, node: &str) -> Database {
    Database::new("event store", url.to_owned().into(), group, node)
}

pub fn options(url: &str, group: &str, node: &str) -> Options {
    Options {
        group: group.to_owned(),
        node: node.to_owned(),
        host: format!("host-of-{node}"),
        key: KEY,
        projection: None,
        load: Load::default(),
        lock_database: database(url, group, node),
        read_model: Database::new("read model", url.to_owned().into(), group, node),
        control_schema: control(),
        timing: quick(),
        denied_limit: Duration::from_secs(1),
        metrics: LeaderMetrics::default(),
    }
}

/// A replica: an election, and "loops" that end as soon as they are told to.
pub struct Replica {
    pub handle: Handle,
    pub shutdown: CancellationToken,
    thread: std::thread::JoinHandle<()>,
}

impl Replica {
    /// Whose work ends at once.
    pub fn start(options: Options) -> Self {
        let replica = Self::start_with_endless_work(options);
        let handle = replica.handle.clone();
        tokio::spawn(async move {
            let mut role = handle.role();
            let progress = handle.progress();
            let mut tick = tokio::time::interval(Duration::from_millis(100));
            loop {
                let draining = match &*role.borrow_and_update() {
                    Role::Draining { term, .. } => Some(*term),
                    _ => None,
                };
                if let Some(term) = draining {
                    handle.drained(term);
                }
                tokio::select! {
                    changed = role.changed() => if changed.is_err() { return },
                    _ = tick.tick() => progress.tick(),
                }
            }
        });
        replica
    }

    /// Whose work never ends, and never shows progress.
    pub fn start_with_endless_work(options: Options) -> Self {
        let shutdown = CancellationToken::new();
        let (handle, thread) =
            spawn(options, shutdown.clone(), Arc::new(BootClock)).expect("the options are fine");
        Self {
            handle,
            shutdown,
            thread,
        }
    }

    pub async fn until<T>(&self, what: &str, mut check: impl FnMut(&Role) -> Option<T>) -> T {
        let mut role = self.handle.role();
        let mut last = None;
        let waiting = async {
            loop {
                {
                    let now = role.borrow_and_update();
                    if let Some(found) = check(&now) {
                        return found;
                    }
                    last = Some(now.clone());
                }
                role.changed().await.expect("the election runs");
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(found) => found,
            Err(_) => panic!("waited in vain until {what}; the role is {last:?}"),
        }
    }

    pub async fn leads(&self) -> Leadership {
        self.until("it leads", |role| role.leadership().cloned())
            .await
    }

    pub async fn leads_after(&self, term: Term) -> Leadership {
        self.until("it leads a newer term", |role| {
            role.leadership().filter(|l| l.term > term).cloned()
        })
        .await
    }

    pub async fn drains(&self) -> Cause {
        self.until("it drains", |role| match role {
            Role::Draining { cause, .. } => Some(*cause),
            _ => None,
        })
        .await
    }

    pub async fn denied(&self, what: &str, check: impl Fn(&Denied) -> bool) -> Denied {
        self.until(what, |role| match role {
            Role::Follower(denied) if check(denied) => Some(denied.clone()),
            _ => None,
        })
        .await
    }

    /// Whether it may work: the role is published a moment after its lease has ended.
    pub fn leads_now(&self) -> bool {
        let role = self.handle.role();
        let role = role.borrow();
        role.leadership()
            .is_some_and(|leadership| leadership.lease.is_valid())
    }

    pub async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(PATIENCE, self.handle.stopped())
            .await
            .expect("a replica stops in time");
        self.thread.join().expect("the election does not panic");
    }
}

/// Waits for whichever replica leads first.
pub async fn first_leader(replicas: &[Replica]) -> usize {
    let waiting = replicas.iter().map(|replica| Box::pin(replica.leads()));
    let (_, first, _) = futures_util::future::select_all(waiting).await;
    first
}

pub async fn connect(database: &Database) -> PgConnection {
    database
        .connect(&Purpose::Admin)
        .await
        .expect("the server runs")
}

pub fn site(url: &str, node: &str) -> Site {
    let timing = quick();
    Site {
        database: database(url, "default", node),
        key: KEY,
        local_lease: timing.local_lease,
        server_lease: timing.server_lease,
    }
}

pub fn claimant(url: &str, node: &str, session: &Session) -> (Claimant, Watcher) {
    let options = options(url, "default", node);
    let claimant = Claimant {
        read_model: options.read_model,
        control: options.control_schema,
        group: options.group,
        projection: None,
        node: options.node,
        host: options.host,
        lock_key: KEY.to_string(),
        lock_database: session.facts().lock_database.clone(),
        lock_timeline: session.facts().timeline.clone(),
        backend_pid: session.facts().backend_pid,
    };
    let watcher = Watcher {
        database: options.lock_database,
    };
    (claimant, watcher)
}

/// Polls a condition on the database until it holds.
pub async fn eventually(what: &str, mut check: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !check().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(
        tokio::time::timeout(PATIENCE, waiting).await.is_ok(),
        "waited in vain until {what}"
    );
}
