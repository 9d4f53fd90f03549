//! The last resort of a claim: ending sessions of the own group that hold the rows it needs.
//!
//! Promises: ends only sessions that `pg_blocking_pids` names and whose name begins with
//! `projector/<group>/`. Their transactions roll back, which the fence would have made of them anyway.

use sqlx::{Connection as _, Row as _};

use super::STATEMENT_LIMIT;
use crate::database::error::Error;
use crate::database::session::{Database, Purpose, bounded};

/// Ends what blocks `claim_pid`, and returns the blockers that it could not or must not end.
pub(super) async fn end(
    database: &Database,
    group: &str,
    claim_pid: i32,
) -> Result<Vec<String>, Error> {
    let name = database.name;
    let mut connection = database.connect(&Purpose::Admin).await?;
    let blocking = sqlx::query(include_str!("blockers.sql")).bind(claim_pid);
    let rows = bounded(name, STATEMENT_LIMIT, blocking.fetch_all(&mut connection)).await?;
    let prefix = own_prefix(database, group);
    let mut left = Vec::new();
    for row in rows {
        let pid: i32 = row.try_get(0)?;
        let application: String = row.try_get(1)?;
        if !application.starts_with(&prefix) {
            left.push(format!("pid {pid} ({application})"));
            continue;
        }
        let end = sqlx::query_scalar::<_, bool>("SELECT pg_terminate_backend($1)").bind(pid);
        match bounded(name, STATEMENT_LIMIT, end.fetch_one(&mut connection)).await {
            Ok(_) => tracing::warn!(
                pid,
                application,
                "ended a session of a former leader that blocked the claim of a term"
            ),
            Err(error) if error.sqlstate().is_some() => {
                left.push(format!("pid {pid} ({application}; {error})"));
            }
            Err(error) => return Err(error),
        }
    }
    let _closed = tokio::time::timeout(STATEMENT_LIMIT, connection.close()).await;
    Ok(left)
}

/// `projector/<group>/` as it stands in `application_name`, where unusual characters are replaced.
fn own_prefix(database: &Database, group: &str) -> String {
    let own = database.application_name(&Purpose::Write);
    let length = ("projector/".len() + group.chars().count() + 1).min(own.len());
    own.chars().take(length).collect()
}
