//! `leader resign`: asks the leader to hand over, from any machine, and waits until it has.
//!
//! The request is a lock on a key that belongs to the leader's term: the leader meets it in its next heartbeat.
//! When this command dies, its request goes with it, and no later leader is asked by mistake.

use std::time::{Duration, Instant};

use sqlx::AssertSqlSafe;

use super::Target;
use super::show::leader;
use crate::advisory_lock::session::{self, Leases};
use crate::commands::output::Output;
use crate::database::error::Error as DatabaseError;
use crate::database::session::{Purpose, bounded};
use crate::error::{Code, Exit, Failure};
use crate::leadership::Leader;
use crate::leadership::session::resign_key;

/// Pause between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Bound on writing the audit.
const AUDIT_LIMIT: Duration = Duration::from_secs(5);

/// Arguments of `leader resign`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The projection, with `[leader] scope = "projection"`
    #[arg(long, value_name = "NAME")]
    pub(super) projection: Option<String>,
    /// Wait this long for the hand-over
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "60s")]
    timeout: Duration,
}

/// Asks the leader to resign and waits for the next one.
///
/// # Errors
/// [`Exit::TryAgain`] when nobody leads, or when the leader has not handed over in time.
pub async fn run(args: &Args, target: &Target, actor: &str, out: &Output) -> Result<(), Failure> {
    let Some(old) = leader(target).await? else {
        return Err(Failure::new(
            Exit::TryAgain,
            "nobody leads at the moment, so nobody can resign",
        ));
    };
    let key = resign_key(target.key, old.term_id);
    let asking = session::acquire(&target.lock_database, key, args.timeout, Leases::default());
    let request = asking.await.map_err(|error| error.to_failure())?;
    audit(target, actor, &old).await?;
    out.note(&format!("asked node {} to hand over", old.node));
    let started = Instant::now();
    let mut free = false;
    while started.elapsed() < args.timeout {
        match leader(target).await? {
            Some(new) if new.term_id != old.term_id => {
                return out.text(&format!(
                    "node {} leads in term {}, after node {} in term {}",
                    new.node, new.term, old.node, old.term
                ));
            }
            Some(_) => {}
            None => free = true,
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    drop(request);
    let waited = humantime::format_duration(args.timeout);
    Err(Failure::coded(
        Exit::TryAgain,
        Code(411),
        match free {
            true => format!(
                "node {} handed over, but nobody leads after {waited}",
                old.node
            ),
            false => format!("node {} still leads after {waited}", old.node),
        },
    ))
}

async fn audit(target: &Target, actor: &str, leader: &Leader) -> Result<(), DatabaseError> {
    let mut connection = target.read_model.connect(&Purpose::Admin).await?;
    let sql = format!(
        "INSERT INTO {}.audit (actor, action, detail) VALUES ($1, 'resign', jsonb_build_object('node', $2, 'term', $3))",
        target.control.quoted()
    );
    let insert = sqlx::query(AssertSqlSafe(sql))
        .bind(actor)
        .bind(&leader.node)
        .bind(leader.term.0);
    bounded(
        target.read_model.name,
        AUDIT_LIMIT,
        insert.execute(&mut connection),
    )
    .await?;
    Ok(())
}
