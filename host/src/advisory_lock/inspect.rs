//! Who holds which advisory lock, who waits, and who keeps whom waiting.
//!
//! Promises: both forms of keys are decoded, negative ones too; works with a role that may see nothing of
//! other roles' sessions, and says then what is hidden. Only the current database: locks of others are
//! numbers without meaning here.

use serde::Serialize;
use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgRow};

use super::error::Error;
use super::key::{Key, Tag};
use super::registry::Registry;

/// A holder that has been idle for longer than this probably forgot its lock.
pub const LEAK_SUSPECTED_SECONDS: f64 = 60.0;

/// A lock that is held or waited for. Fields that the server hides from this role are absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lock {
    /// The key as text: a number, or `(a, b)`.
    pub key: String,
    /// The single key, as text, since it may not fit a double.
    pub key_bigint: Option<String>,
    /// The pair.
    pub key_pair: Option<(i32, i32)>,
    /// Name from `[locks.registry]`, or `leader`.
    pub name: Option<String>,
    /// `exclusive` or `shared`.
    pub mode: &'static str,
    /// Held, and not waited for.
    pub granted: bool,
    /// The server process; absent for a prepared transaction.
    pub pid: Option<i32>,
    /// `application_name`.
    pub application_name: Option<String>,
    /// Role.
    pub user: Option<String>,
    /// Address of the client; absent on a local socket.
    pub client: Option<String>,
    /// `active`, `idle`, `idle in transaction` and so on.
    pub state: Option<String>,
    /// How long it has been in this state.
    pub state_seconds: Option<f64>,
    /// How long the session has been there: the lock cannot be older.
    pub session_seconds: Option<f64>,
    /// How long it has waited.
    pub waiting_seconds: Option<f64>,
    /// Last or current statement, cut.
    pub query: Option<String>,
    /// Pids that it waits for.
    pub blocked_by: Vec<i32>,
    /// Held by a session that has been idle for a while: a likely leak.
    pub idle_and_holding: bool,
    /// The server hides most of this session from this role.
    pub hidden: bool,
}

/// All advisory locks of the current database, in order of their keys, holders first.
///
/// # Errors
/// When the database fails.
pub async fn locks(connection: &mut PgConnection, registry: &Registry) -> Result<Vec<Lock>, Error> {
    let rows = sqlx::query(include_str!("inspect/locks.sql"))
        .fetch_all(connection)
        .await?;
    let mut locks = Vec::with_capacity(rows.len());
    for row in rows {
        locks.extend(lock(&row, registry)?);
    }
    Ok(locks)
}

fn lock(row: &PgRow, registry: &Registry) -> Result<Option<Lock>, sqlx::Error> {
    let tag = Tag {
        classid: row.try_get("classid")?,
        objid: row.try_get("objid")?,
        objsubid: row.try_get("objsubid")?,
    };
    let Some(key) = Key::from_tag(tag) else {
        return Ok(None);
    };
    let granted: bool = row.try_get("granted")?;
    let state: Option<String> = row.try_get("state")?;
    let state_seconds: Option<f64> = row.try_get("state_seconds")?;
    let idle = state
        .as_deref()
        .is_some_and(|state| state.starts_with("idle"));
    let idle_for_long = state_seconds.is_some_and(|seconds| seconds > LEAK_SUSPECTED_SECONDS);
    let mode: String = row.try_get("mode")?;
    Ok(Some(Lock {
        key: key.to_string(),
        key_bigint: match key {
            Key::Single(key) => Some(key.to_string()),
            Key::Pair(..) => None,
        },
        key_pair: match key {
            Key::Pair(a, b) => Some((a, b)),
            Key::Single(_) => None,
        },
        name: registry.name_of(key),
        mode: if mode == "ShareLock" {
            "shared"
        } else {
            "exclusive"
        },
        granted,
        pid: row.try_get("pid")?,
        application_name: row.try_get("application_name")?,
        user: row.try_get("usename")?,
        client: row.try_get("client")?,
        idle_and_holding: granted && idle && idle_for_long,
        state,
        state_seconds,
        session_seconds: row.try_get("session_seconds")?,
        waiting_seconds: row.try_get("waiting_seconds")?,
        query: row.try_get("query")?,
        blocked_by: row.try_get("blocked_by")?,
        hidden: row.try_get("hidden")?,
    }))
}
