//! The listener of `disintegrate-postgres`, as a program that uses it would set it up: poller with notifier, and a
//! transaction for each event. Its events are loaded into its own table first, which is not measured.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use disintegrate::serde::json::Json;
use disintegrate::{Event, EventListener, PersistedEvent, StreamQuery, query};
use disintegrate_postgres::{
    PgEventId, PgEventListener, PgEventListenerConfig, PgEventListenerError, PgEventStore,
    RetryAction,
};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::Notify;

use crate::Done;
use crate::order::{self, Data};

/// How often it looks when nothing wakes it.
const POLL: Duration = Duration::from_millis(250);

/// The order events in this store's form: an object with the event's name as its only key.
#[derive(Debug, Clone, PartialEq, Eq, Event, Serialize, Deserialize)]
enum OrderEvent {
    OrderCreated {
        #[id]
        order_uuid: String,
        #[serde(flatten)]
        data: Data,
    },
    OrderDetailsUpdated {
        #[id]
        order_uuid: String,
        #[serde(flatten)]
        data: Data,
    },
    OrderStatusChanged {
        #[id]
        order_uuid: String,
        #[serde(flatten)]
        data: Data,
    },
    OrderCancelled {
        #[id]
        order_uuid: String,
        #[serde(flatten)]
        data: Data,
    },
    OrderAssignmentUpdated {
        #[id]
        order_uuid: String,
        #[serde(flatten)]
        data: Data,
    },
    OrderSettlementUpdated {
        #[id]
        order_uuid: String,
        #[serde(flatten)]
        data: Data,
    },
}

impl OrderEvent {
    fn into_data(self) -> Data {
        let (Self::OrderCreated {
            order_uuid,
            mut data,
        }
        | Self::OrderDetailsUpdated {
            order_uuid,
            mut data,
        }
        | Self::OrderStatusChanged {
            order_uuid,
            mut data,
        }
        | Self::OrderCancelled {
            order_uuid,
            mut data,
        }
        | Self::OrderAssignmentUpdated {
            order_uuid,
            mut data,
        }
        | Self::OrderSettlementUpdated {
            order_uuid,
            mut data,
        }) = self;
        data.insert("order_uuid".to_owned(), order_uuid.into());
        data
    }
}

/// The projection behind the listener.
struct Orders {
    query: StreamQuery<PgEventId, OrderEvent>,
    pool: PgPool,
    left: Arc<AtomicU64>,
    done: Arc<Notify>,
}

/// Why an event did not pass.
#[derive(Debug)]
struct Failed(anyhow::Error);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Failed {}

#[async_trait]
impl EventListener<PgEventId, OrderEvent> for Orders {
    type Error = Failed;

    fn id(&self) -> &'static str {
        "orders"
    }

    fn query(&self) -> &StreamQuery<PgEventId, OrderEvent> {
        &self.query
    }

    async fn handle(&self, event: PersistedEvent<PgEventId, OrderEvent>) -> Result<(), Failed> {
        self.apply(event).await.map_err(Failed)?;
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.done.notify_one();
        }
        Ok(())
    }
}

impl Orders {
    async fn apply(&self, event: PersistedEvent<PgEventId, OrderEvent>) -> Result<()> {
        let (position, event) = (event.id(), event.into_inner());
        let kind = event.name();
        let data = event.into_data();
        let mut transaction = self.pool.begin().await?;
        order::apply(&mut transaction, position, kind, &data).await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// Loads the events, then listens until all have been handled.
pub async fn listen(url: &str, upto: i64) -> Result<Done> {
    let pool = PgPoolOptions::new().max_connections(5).connect(url).await?;
    let store = PgEventStore::try_new(pool.clone(), Json::<OrderEvent>::default()).await?;
    let loaded = sqlx::query(
        "INSERT INTO event (event_id, event_type, payload, order_uuid) \
         SELECT position, type, convert_to(jsonb_build_object(type, data)::text, 'UTF8'), data ->> 'order_uuid' \
         FROM event_store.events WHERE position <= $1 AND type = ANY ($2) ORDER BY position",
    )
    .bind(upto)
    .bind(order::TYPES.map(str::to_owned).to_vec())
    .execute(&pool)
    .await?
    .rows_affected();
    let (left, done) = (Arc::new(AtomicU64::new(loaded)), Arc::new(Notify::new()));
    let orders = Orders {
        query: query!(OrderEvent),
        pool,
        left,
        done: Arc::clone(&done),
    };
    let fault = Arc::new(Mutex::new(None));
    let (told, ended) = (Arc::clone(&fault), Arc::clone(&done));
    let retry = move |error: PgEventListenerError<Failed>, _attempts: usize| {
        *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("{error:?}"));
        ended.notify_one();
        RetryAction::Abort
    };
    let config = PgEventListenerConfig::poller(POLL)
        .with_notifier()
        .with_retry(retry);
    let begun = Instant::now();
    let finished = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&finished);
    PgEventListener::builder(store)
        .register_listener(orders, config)
        .start_with_shutdown(async move {
            done.notified().await;
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun.elapsed());
        })
        .await?;
    if let Some(fault) = fault.lock().unwrap_or_else(PoisonError::into_inner).take() {
        anyhow::bail!("the listener failed: {fault}");
    }
    let seconds = finished
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let seconds = seconds.context("the listener ended early")?.as_secs_f64();
    Ok(Done {
        events: loaded,
        seconds,
    })
}
