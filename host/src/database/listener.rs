//! LISTEN/NOTIFY as a level: a notification only raises a flag, which the waiting loop lowers before it looks.
//!
//! The listener is a task of its own that is never cancelled while it receives, but for silence: a cancelled
//! receive can lose a reconnect, and with it every notification of that moment. After a lost session, an
//! error or a failed probe everything is rebuilt and the loop is told to look again.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Executor as _;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use prometheus_client::metrics::counter::Counter;

use super::backoff;
use super::session::{self, CONNECT_TIMEOUT, Database, Purpose};

/// So long without a notification, and the session is asked whether it lives.
const SILENCE: Duration = Duration::from_secs(15);
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Waits between sessions.
const RECONNECT_MIN: Duration = Duration::from_millis(100);
const RECONNECT_MAX: Duration = Duration::from_secs(10);

/// Whether notifications are received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerState {
    /// They are.
    Listening,
    /// Only polling: switched off, or the listening session is down.
    PollingOnly,
}

/// Receives notifications of one channel, over a session of its own.
#[derive(Debug)]
pub struct Listener {
    /// Where.
    pub database: Database,
    /// What.
    pub channel: String,
    /// Raised by each notification, and whenever notifications may have been missed.
    pub wake: Arc<Notify>,
    /// For others to see.
    pub state: watch::Sender<ListenerState>,
    /// Counts how often it listened again after a session was lost.
    pub reconnects: Counter,
}

impl Listener {
    /// Listens until shut down; an outage only delays.
    pub async fn run(self, shutdown: CancellationToken) {
        let waits = || backoff::waits(RECONNECT_MIN, RECONNECT_MAX);
        let mut pauses = waits();
        let mut again = false;
        loop {
            let lost = tokio::select! {
                () = shutdown.cancelled() => return,
                lost = self.session(&mut again) => lost,
            };
            let was_listening =
                self.state.send_replace(ListenerState::PollingOnly) == ListenerState::Listening;
            self.wake.notify_one();
            if was_listening {
                pauses = waits();
            }
            tracing::warn!(
                channel = self.channel,
                reason = lost,
                "not listening; polling goes on"
            );
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(pauses.next().unwrap_or(RECONNECT_MAX)) => {}
            }
        }
    }

    /// One session, from connect to loss. Returns why it was lost.
    async fn session(&self, again: &mut bool) -> String {
        let options = match self.database.options(&Purpose::Listen).await {
            Ok(options) => options,
            Err(error) => return error.to_string(),
        };
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(CONNECT_TIMEOUT)
            .max_lifetime(None)
            .idle_timeout(None)
            .after_connect(|connection, _| {
                Box::pin(async move {
                    session::apply(connection, &Purpose::Listen)
                        .await
                        .map_err(|error| sqlx::Error::Protocol(error.to_string()))
                })
            })
            .connect_lazy_with(options);
        let listening = async {
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.eager_reconnect(false);
            listener.listen(&self.channel).await?;
            Ok::<_, sqlx::Error>(listener)
        };
        let mut listener = match tokio::time::timeout(CONNECT_TIMEOUT, listening).await {
            Ok(Ok(listener)) => listener,
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return format!("no answer within {CONNECT_TIMEOUT:?}"),
        };
        self.state.send_replace(ListenerState::Listening);
        if std::mem::replace(again, true) {
            self.reconnects.inc();
        }
        // Whatever was committed before LISTEN took effect sends no notification any more: look again.
        self.wake.notify_one();
        loop {
            match tokio::time::timeout(SILENCE, listener.try_recv()).await {
                Ok(Ok(Some(_))) => self.wake.notify_one(),
                Ok(Ok(None)) => return "the session was closed".to_owned(),
                Ok(Err(error)) => return error.to_string(),
                Err(_) => {
                    match tokio::time::timeout(PROBE_TIMEOUT, listener.execute("SELECT 1")).await {
                        Ok(Ok(_)) => {}
                        Ok(Err(error)) => return error.to_string(),
                        Err(_) => return format!("silent, and no answer within {PROBE_TIMEOUT:?}"),
                    }
                }
            }
        }
    }
}
