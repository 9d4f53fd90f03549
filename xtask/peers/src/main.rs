//! Other ways to do the work of the `order` projection, to measure the host against.
//!
//! `projector-peers WAY URL UPTO` folds the order events up to a position into the tables of schema `peer`, which must
//! be there and empty, and prints the number of events and the seconds that it took.

mod listener;
mod order;
mod rows;

use anyhow::{Context as _, Result, bail};

/// What a way came to.
pub struct Done {
    /// Events that were folded.
    pub events: u64,
    /// How long it took, connecting and setting up left out.
    pub seconds: f64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, url, upto] = arguments.as_slice() else {
        bail!("usage: projector-peers rows-in-one-transaction|row-commits|listener URL UPTO");
    };
    let upto: i64 = upto.parse().context("UPTO is no position")?;
    let done = match way.as_str() {
        "rows-in-one-transaction" => rows::one_transaction(url, upto).await?,
        "row-commits" => rows::transaction_each(url, upto).await?,
        "listener" => listener::listen(url, upto).await?,
        other => bail!("there is no way {other:?}"),
    };
    println!("{} {}", done.events, done.seconds);
    Ok(())
}
