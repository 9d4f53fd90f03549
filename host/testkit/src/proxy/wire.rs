//! What all connections of one proxy share: the state of the network, and who is connected.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    commit::Commits,
    connection::Connection,
    cut::Cuts,
    forge::Forge,
    link::{Direction, Link},
};

/// A wait looks at least this often whether its connection has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Wire {
    pub(super) commits: Commits,
    pub(super) cuts: Cuts,
    pub(super) forge: Forge,
    pub(super) seed: u64,
    server: Mutex<String>,
    attempts: AtomicU64,
    link: Mutex<Link>,
    changed: Condvar,
    connections: Mutex<Vec<Weak<Connection>>>,
    held_back_bytes: AtomicU64,
    over: AtomicBool,
}

impl Wire {
    pub(super) fn new(server: String, seed: u64) -> Self {
        Self {
            commits: Commits::default(),
            cuts: Cuts::default(),
            forge: Forge::default(),
            seed,
            server: Mutex::new(server),
            attempts: AtomicU64::new(0),
            link: Mutex::default(),
            changed: Condvar::new(),
            connections: Mutex::default(),
            held_back_bytes: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }
    }

    pub(super) fn server(&self) -> String {
        locked(&self.server).clone()
    }

    pub(super) fn set_server(&self, server: String) {
        *locked(&self.server) = server;
    }

    pub(super) fn count_attempt(&self) {
        self.attempts.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::SeqCst)
    }

    pub(super) fn set(&self, link: Link) {
        *locked(&self.link) = link;
        self.changed.notify_all();
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Takes a connection in and gives it its number.
    pub(super) fn register(&self, connection: &Arc<Connection>) -> u64 {
        let mut connections = locked(&self.connections);
        connections.retain(|one| one.strong_count() > 0);
        connections.push(Arc::downgrade(connection));
        connections.len() as u64
    }

    pub(super) fn open(&self) -> Vec<Arc<Connection>> {
        let connections = locked(&self.connections);
        let open = connections.iter().filter_map(Weak::upgrade);
        open.filter(|connection| !connection.is_closed()).collect()
    }

    pub(super) fn count_held_back(&self, bytes: usize) {
        self.held_back_bytes
            .fetch_add(bytes as u64, Ordering::SeqCst);
    }

    pub(super) fn held_back_bytes(&self) -> u64 {
        self.held_back_bytes.load(Ordering::SeqCst)
    }

    /// The network as this connection meets it.
    pub(super) fn link_of(&self, connection: &Connection) -> Link {
        let link = locked(&self.link);
        if link.concerns(|purpose| connection.serves(purpose)) {
            link.clone()
        } else {
            Link::default()
        }
    }

    /// Waits until the network carries a connection that nobody knows yet; false when it is over.
    pub(super) fn carried_to_server(&self) -> bool {
        self.wait(
            |link| !link.concerns(|_| false) || link.carries(Direction::ToServer),
            || false,
        )
    }

    /// Waits until the network carries this direction of a connection; false when that has ended.
    pub(super) fn carried(&self, connection: &Connection, direction: Direction) -> bool {
        self.wait(
            |link| {
                let silent =
                    link.concerns(|purpose| connection.serves(purpose)) && !link.carries(direction);
                !silent && !connection.is_muted(direction)
            },
            || connection.is_closed(),
        )
    }

    /// Lets time pass for a connection; false when that has ended.
    pub(super) fn pass(&self, connection: &Connection, time: Duration) -> bool {
        let end = Instant::now() + time;
        self.wait_until(
            |_| Instant::now() >= end,
            || connection.is_closed(),
            || end.saturating_duration_since(Instant::now()),
        )
    }

    fn wait(&self, ready: impl Fn(&Link) -> bool, closed: impl Fn() -> bool) -> bool {
        self.wait_until(ready, closed, || LOOK_INTERVAL)
    }

    fn wait_until(
        &self,
        ready: impl Fn(&Link) -> bool,
        closed: impl Fn() -> bool,
        next_look: impl Fn() -> Duration,
    ) -> bool {
        let mut link = locked(&self.link);
        loop {
            if self.is_over() || closed() {
                return false;
            }
            if ready(&link) {
                return true;
            }
            let look = next_look().min(LOOK_INTERVAL);
            let waited = self.changed.wait_timeout(link, look);
            link = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
