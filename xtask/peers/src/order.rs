//! The `order` projection as one would write it by hand: the row is read, changed, and the totals follow.

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};
use sqlx::PgConnection;
use uuid::Uuid;

/// The payload of an event.
pub type Data = Map<String, Value>;

/// The event types of this projection.
pub const TYPES: [&str; 6] = [
    "OrderCreated",
    "OrderDetailsUpdated",
    "OrderStatusChanged",
    "OrderCancelled",
    "OrderAssignmentUpdated",
    "OrderSettlementUpdated",
];

/// Applies one event.
pub async fn apply(db: &mut PgConnection, position: i64, kind: &str, data: &Data) -> Result<()> {
    let (merchant, order) = (
        merchant(data)?,
        id(data, "order_uuid")?.context("no order")?,
    );
    if kind == "OrderCreated" {
        return create(db, position, merchant, order, data).await;
    }
    let row: Option<(String, i64)> = sqlx::query_as(
        "SELECT status, amount_cents FROM peer.orders WHERE merchant_id = $1 AND order_uuid = $2",
    )
    .bind(merchant)
    .bind(order)
    .fetch_optional(&mut *db)
    .await?;
    let Some((old_status, old_amount)) = row else {
        return Ok(());
    };
    let (mut status, mut amount) = (old_status.as_str(), old_amount);
    let set = match kind {
        "OrderDetailsUpdated" => "customer_uuid = $5, amount_cents = $6, notes = $7",
        "OrderStatusChanged" => "status = $5, completed_at = $6::timestamptz",
        "OrderCancelled" => "status = 'cancelled', cancellation_reason = $5, completed_at = NULL",
        "OrderAssignmentUpdated" => {
            "scheduled_start_at = $5::timestamptz, scheduled_end_at = $6::timestamptz, dispatch_note = $7"
        }
        "OrderSettlementUpdated" => {
            "settlement_status = $5, settlement_note = $6, paid_amount_cents = $7, payment_method = $8, \
             paid_at = $9::timestamptz"
        }
        other => bail!("there is no event {other}"),
    };
    let sql = format!(
        "UPDATE peer.orders SET {set}, updated_at = $3::timestamptz, last_position = $4 \
         WHERE merchant_id = $1 AND order_uuid = $2"
    );
    let query = sqlx::query(&sql)
        .bind(merchant)
        .bind(order)
        .bind(time(data, "updated_at"))
        .bind(position);
    let query = match kind {
        "OrderDetailsUpdated" => {
            amount = whole(data, "amount_cents").context("no amount")?;
            query
                .bind(id(data, "customer_uuid")?)
                .bind(amount)
                .bind(text(data, "notes"))
        }
        "OrderStatusChanged" => {
            status = text(data, "status").context("no status")?;
            query.bind(status).bind(time(data, "completed_at"))
        }
        "OrderCancelled" => {
            status = "cancelled";
            query.bind(text(data, "cancellation_reason"))
        }
        "OrderAssignmentUpdated" => query
            .bind(time(data, "scheduled_start_at"))
            .bind(time(data, "scheduled_end_at"))
            .bind(text(data, "dispatch_note")),
        _ => query
            .bind(text(data, "settlement_status"))
            .bind(text(data, "settlement_note"))
            .bind(whole(data, "paid_amount_cents"))
            .bind(text(data, "payment_method"))
            .bind(time(data, "paid_at")),
    };
    query.execute(&mut *db).await?;
    if status != old_status {
        total(db, merchant, &old_status, -1, -old_amount).await?;
        total(db, merchant, status, 1, amount).await?;
    } else if amount != old_amount {
        total(db, merchant, status, 0, amount - old_amount).await?;
    }
    Ok(())
}

async fn create(
    db: &mut PgConnection,
    position: i64,
    merchant: Uuid,
    order: Uuid,
    data: &Data,
) -> Result<()> {
    let status = text(data, "status").context("no status")?;
    let amount = whole(data, "amount_cents").context("no amount")?;
    let done = sqlx::query(
        "INSERT INTO peer.orders (merchant_id, order_uuid, request_uuid, customer_uuid, status, settlement_status, \
         amount_cents, paid_amount_cents, payment_method, scheduled_start_at, scheduled_end_at, completed_at, paid_at, \
         cancellation_reason, notes, dispatch_note, settlement_note, inserted_at, updated_at, last_position) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::timestamptz, $11::timestamptz, $12::timestamptz, \
         $13::timestamptz, $14, $15, $16, $17, $18::timestamptz, $19::timestamptz, $20) ON CONFLICT DO NOTHING",
    )
    .bind(merchant)
    .bind(order)
    .bind(id(data, "request_id")?)
    .bind(id(data, "customer_uuid")?)
    .bind(status)
    .bind(text(data, "settlement_status"))
    .bind(amount)
    .bind(whole(data, "paid_amount_cents"))
    .bind(text(data, "payment_method"))
    .bind(time(data, "scheduled_start_at"))
    .bind(time(data, "scheduled_end_at"))
    .bind(time(data, "completed_at"))
    .bind(time(data, "paid_at"))
    .bind(text(data, "cancellation_reason"))
    .bind(text(data, "notes"))
    .bind(text(data, "dispatch_note"))
    .bind(text(data, "settlement_note"))
    .bind(time(data, "inserted_at"))
    .bind(time(data, "updated_at"))
    .bind(position)
    .execute(&mut *db)
    .await?;
    match done.rows_affected() {
        0 => Ok(()),
        _ => total(db, merchant, status, 1, amount).await,
    }
}

async fn total(
    db: &mut PgConnection,
    merchant: Uuid,
    status: &str,
    orders: i64,
    amount: i64,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO peer.order_totals AS t (merchant_id, status, orders, amount_cents) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (merchant_id, status) DO UPDATE \
         SET orders = t.orders + EXCLUDED.orders, amount_cents = t.amount_cents + EXCLUDED.amount_cents",
    )
    .bind(merchant)
    .bind(status)
    .bind(orders)
    .bind(amount)
    .execute(db)
    .await?;
    Ok(())
}

fn text<'a>(data: &'a Data, name: &str) -> Option<&'a str> {
    data.get(name)?.as_str()
}

/// Some producers write whole numbers with a point.
fn whole(data: &Data, name: &str) -> Option<i64> {
    let value = data.get(name)?;
    value
        .as_i64()
        .or_else(|| value.as_f64().map(|float| float as i64))
}

/// The text of a time, cut to microseconds: the database would round.
fn time(data: &Data, name: &str) -> Option<String> {
    let text = text(data, name)?;
    Some(match text.len() > 27 {
        true => format!("{}Z", &text[..26]),
        false => text.to_owned(),
    })
}

fn id(data: &Data, name: &str) -> Result<Option<Uuid>> {
    Ok(text(data, name).map(Uuid::try_parse).transpose()?)
}

fn merchant(data: &Data) -> Result<Uuid> {
    if let Some(merchant) = id(data, "merchant_id")? {
        return Ok(merchant);
    }
    let schema = text(data, "tenant_schema").context("no merchant")?;
    let digits = schema.len().checked_sub(32).context("no merchant")?;
    Ok(Uuid::try_parse(&schema[digits..])?)
}
