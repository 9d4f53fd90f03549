//! A standby's ear for hand-overs: a leader that leaves says so, and the next one need not wait for its interval.
//!
//! It is a hint: the interval goes on, so without notifications (switched off by a pooler, or lost) a hand-over takes
//! a little longer and nothing else. The session is one of its own, open only while this replica stands by; why it is
//! not the lock session stands in `docs/leadership.md`. Must never: touch the lock session, or keep a session while
//! this replica leads.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::database::listener::{Listener, ListenerState};
use crate::database::session::Database;
use crate::leadership::session::{Site, handover_channel};

/// Longest closing of the session.
const END_LIMIT: Duration = Duration::from_secs(1);

/// Listens while it is told to.
pub(super) struct HandOver {
    database: Database,
    channel: String,
    reconnects: Counter,
    announced: Arc<Notify>,
    /// The guard ends the listening when it goes.
    listening: Option<(DropGuard, JoinHandle<()>)>,
}

impl HandOver {
    pub(super) fn new(site: &Site, reconnects: Counter) -> Self {
        Self {
            database: site.database.clone(),
            channel: handover_channel(site.key),
            reconnects,
            announced: Arc::default(),
            listening: None,
        }
    }

    /// Begins or ends listening.
    pub(super) fn attend(&mut self, stands_by: bool) {
        if !stands_by {
            self.listening = None;
        } else if self.listening.is_none() {
            let listener = Listener {
                database: self.database.clone(),
                channel: self.channel.clone(),
                wake: Arc::clone(&self.announced),
                state: watch::channel(ListenerState::PollingOnly).0,
                reconnects: self.reconnects.clone(),
            };
            let shutdown = CancellationToken::new();
            let task = tokio::spawn(listener.run(shutdown.clone()));
            self.listening = Some((shutdown.drop_guard(), task));
        }
    }

    /// Ends listening and waits until its session is closed.
    pub(super) async fn end(&mut self) {
        if let Some((guard, task)) = self.listening.take() {
            drop(guard);
            let _ended = tokio::time::timeout(END_LIMIT, task).await;
        }
    }

    /// Resolves when the lock may have become free.
    pub(super) async fn announced(&self) {
        self.announced.notified().await;
    }
}
