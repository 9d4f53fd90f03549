//! Row by row: events are read in pages, each is applied by itself.

use std::time::Instant;

use anyhow::Result;
use sqlx::types::Json;
use sqlx::{Connection as _, PgConnection};

use crate::Done;
use crate::order::{self, Data};

const PAGE_EVENTS: i64 = 1_000;

/// All events in one transaction.
pub async fn one_transaction(url: &str, upto: i64) -> Result<Done> {
    let mut reading = PgConnection::connect(url).await?;
    let mut writing = PgConnection::connect(url).await?;
    let begun = Instant::now();
    let (mut at, mut events) = (0, 0);
    let mut transaction = writing.begin().await?;
    loop {
        let page = page(&mut reading, at, upto).await?;
        let Some((last, ..)) = page.last() else {
            break;
        };
        at = *last;
        for (position, kind, Json(data)) in &page {
            order::apply(&mut transaction, *position, kind, data).await?;
            events += 1;
        }
    }
    advance(&mut transaction, at).await?;
    transaction.commit().await?;
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Done { events, seconds })
}

/// A transaction for each event, with the checkpoint in it.
pub async fn transaction_each(url: &str, upto: i64) -> Result<Done> {
    let mut reading = PgConnection::connect(url).await?;
    let mut writing = PgConnection::connect(url).await?;
    let begun = Instant::now();
    let (mut at, mut events) = (0, 0);
    loop {
        let page = page(&mut reading, at, upto).await?;
        let Some((last, ..)) = page.last() else {
            break;
        };
        at = *last;
        for (position, kind, Json(data)) in &page {
            let mut transaction = writing.begin().await?;
            order::apply(&mut transaction, *position, kind, data).await?;
            advance(&mut transaction, *position).await?;
            transaction.commit().await?;
            events += 1;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Done { events, seconds })
}

async fn page(db: &mut PgConnection, at: i64, upto: i64) -> Result<Vec<(i64, String, Json<Data>)>> {
    Ok(sqlx::query_as(
        "SELECT position, type, data FROM event_store.events \
         WHERE position > $1 AND position <= $2 AND type = ANY ($3) ORDER BY position LIMIT $4",
    )
    .bind(at)
    .bind(upto)
    .bind(order::TYPES.map(str::to_owned).to_vec())
    .bind(PAGE_EVENTS)
    .fetch_all(db)
    .await?)
}

async fn advance(db: &mut PgConnection, to: i64) -> Result<()> {
    sqlx::query("UPDATE peer.checkpoint SET position = $1")
        .bind(to)
        .execute(db)
        .await?;
    Ok(())
}
