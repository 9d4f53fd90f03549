//! The reader of the event store, shared by all terms of this replica: however many projections it leads, one session
//! listens and one looks at the tail.
//!
//! It starts with the first term and ends with the last one. Must never: outlive the terms, or serve a term after it
//! has failed.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Row as _};
use tokio::sync::{Mutex, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::database::connections::Connections;
use crate::database::identifier::Identifier;
use crate::database::session::{Purpose, bounded};
use crate::database::template::render;
use crate::event_store::anchor::{self, Anchor};
use crate::event_store::event::Position;
use crate::event_store::layout::Layout;
use crate::event_store::{self, Feed, Options, StoreIdentity, preflight};
use crate::leadership::Refusal;
use crate::leadership::term::is_older;
use crate::telemetry::metrics::StoreMetrics;

/// Longest wait for the answers that reading begins with.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Where events are read, and who reads them now. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) options: Options,
    /// Sessions to the read model, which remembers how far the store is settled.
    pub(super) connections: Connections,
    pub(super) control: Identifier,
    metrics: StoreMetrics,
    current: Arc<Mutex<Weak<Running>>>,
}

/// A reader at work; it ends when nobody holds this any more.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) feed: Feed,
    pub(super) store: StoreIdentity,
    ended: watch::Receiver<Option<String>>,
    _stop: DropGuard,
}

impl Running {
    /// Resolves when the reader has ended, which it does by itself only with a failure.
    pub(super) async fn failed(&self) -> String {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            Err(_) => "the reader of the event store is gone".to_owned(),
        }
    }
}

impl Reading {
    pub(super) fn new(
        options: Options,
        connections: Connections,
        control: Identifier,
        metrics: StoreMetrics,
    ) -> Self {
        Self {
            options,
            connections,
            control,
            metrics,
            current: Arc::default(),
        }
    }

    /// The reader that runs, or a new one. Safe to cancel.
    pub(super) async fn join(&self) -> Result<Arc<Running>, String> {
        let mut current = self.current.lock().await;
        if let Some(running) = current.upgrade().filter(|one| one.ended.borrow().is_none()) {
            return Ok(running);
        }
        let (store, settled_upto, anchor) = self.begin().await?;
        tracing::info!(
            settled_upto = settled_upto.0,
            timeline = store.timeline,
            "reading the event store"
        );
        let stop = CancellationToken::new();
        let (service, feed) = event_store::Service::new(self.options.clone(), settled_upto);
        let service = match anchor {
            Some(anchor) => service.anchored(anchor),
            None => service,
        };
        let service = service
            .expecting(store.clone())
            .counting(self.metrics.clone());
        let reading = tokio::spawn(service.run(stop.clone()));
        let (end, ended) = watch::channel(None);
        tokio::spawn(async move {
            let why = match reading.await {
                Ok(Ok(())) => "the reader of the event store was told to end".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(panic) => format!("the reader of the event store died: {panic}"),
            };
            end.send_replace(Some(why));
        });
        let running = Arc::new(Running {
            feed,
            store,
            ended,
            _stop: stop.drop_guard(),
        });
        *current = Arc::downgrade(&running);
        Ok(running)
    }

    /// Which store it is, and how far it is known to be settled, with the last event up to there.
    async fn begin(&self) -> Result<(StoreIdentity, Position, Option<Anchor>), String> {
        let mut store = self
            .options
            .database
            .connect(&Purpose::Read)
            .await
            .map_err(|error| error.to_string())?;
        let layout = Layout::Projector {
            schema: self.options.schema.clone(),
        };
        let identifying = preflight::identify(&mut store, &layout);
        let identity = tokio::time::timeout(BEGIN_TIMEOUT, identifying)
            .await
            .map_err(|_| "no answer from the event store database".to_owned())?
            .map_err(|error| error.to_string())?;
        let (settled, anchor) = self.remembered(&identity).await?;
        let at = anchor.as_ref().map_or(settled, |anchor| anchor.position);
        let asking = anchor::look(&mut store, &layout, at, settled);
        let sight = tokio::time::timeout(BEGIN_TIMEOUT, asking)
            .await
            .map_err(|_| "no answer from the event store database".to_owned())?
            .map_err(|error| error.to_string())?;
        let is_known = anchor
            .as_ref()
            .is_none_or(|anchor| anchor.replaced_by(sight.found.as_deref()).is_none());
        if settled > sight.head || !is_known {
            // Nothing that was proven holds for it; each projection is told by its own last event.
            tracing::error!(
                settled = settled.0,
                head = sight.head.0,
                "the event store is not the one that was read; it is proven anew"
            );
            return Ok((identity, Position(0), None));
        }
        Ok((identity, settled, sight.last))
    }

    /// How far this very store is known to be settled. An old primary is refused.
    async fn remembered(
        &self,
        identity: &StoreIdentity,
    ) -> Result<(Position, Option<Anchor>), String> {
        let name = self.connections.database();
        let text = |error: crate::database::error::Error| error.to_string();
        let mut loan = bounded(name, BEGIN_TIMEOUT, self.connections.lend())
            .await
            .map_err(text)?;
        let sql = |template| AssertSqlSafe(render(template, &[("control", &self.control)]));
        let asking =
            sqlx::query_scalar(sql(include_str!("../leadership/term/newest_timeline.sql")))
                .bind(&identity.system_identifier)
                .fetch_one(&mut *loan);
        let newest: Option<String> = bounded(name, BEGIN_TIMEOUT, asking).await.map_err(text)?;
        let asking = sqlx::query(sql(include_str!("../read_model/sql/remembered.sql")))
            .bind(&identity.source)
            .bind(&identity.system_identifier)
            .bind(&identity.timeline)
            .fetch_optional(&mut *loan);
        let row = bounded(name, BEGIN_TIMEOUT, asking).await.map_err(text)?;
        loan.give_back();
        if let Some(newest) = newest.filter(|newest| is_older(&identity.timeline, newest)) {
            let control = self.control.as_str();
            let refusal = Refusal::old_primary("event store", &identity.timeline, &newest, control);
            return Err(format!("{}: {}", refusal.code, refusal.message));
        }
        let Some(row) = row else {
            return Ok((Position(0), None));
        };
        let read = || {
            let anchor = Anchor::of_columns(row.try_get(1)?, row.try_get(2)?);
            Ok::<_, sqlx::Error>((Position(row.try_get(0)?), anchor))
        };
        read().map_err(|error| error.to_string())
    }
}
