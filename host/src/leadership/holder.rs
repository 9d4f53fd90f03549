//! Who holds the leader lock: the session that really has it now, and the term that goes with it.
//!
//! Promises: nobody is called a leader unless `pg_locks` shows the lock at this moment. Works with an
//! unprivileged role, since the identity stands in `application_name`.

use jiff::Timestamp;
use serde::Serialize;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use super::Term;
use crate::advisory_lock::key::Key;
use crate::database::error::Error;
use crate::database::identifier::Identifier;

/// The session that holds the lock, as far as others may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Node of the holder; `None` when it is no replica of this program.
    pub node: Option<String>,
    /// Its machine, from the row of its term.
    pub host: Option<String>,
    /// Its session in the lock database.
    pub backend_pid: i32,
    /// Its `[leader] group`; `None` when it is no replica of this program.
    pub group: Option<String>,
    /// As it stands in `pg_stat_activity`.
    pub application_name: String,
    /// Since when its term runs.
    pub since: Option<Timestamp>,
}

impl Holder {
    /// Whether the holder is no replica of this group: another installation, or another program.
    #[must_use]
    pub fn is_foreign_to(&self, group: &str) -> bool {
        self.group.as_deref() != Some(group)
    }

    /// For messages.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = match (&self.node, &self.group) {
            (Some(node), Some(group)) => format!("node `{node}` of group `{group}`"),
            _ if self.application_name.is_empty() => "a session without a name".to_owned(),
            _ => format!("application `{}`", self.application_name),
        };
        if let Some(host) = &self.host {
            text.push_str(&format!(" on {host}"));
        }
        text.push_str(&format!(" (backend pid {}", self.backend_pid));
        if let Some(since) = self.since {
            text.push_str(&format!(", since {since:.0}"));
        }
        text.push(')');
        text
    }
}

/// A leader, in the shape that `status -o json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leader {
    /// Its node.
    pub node: String,
    /// Its machine.
    pub host: String,
    /// Its session in the lock database.
    pub backend_pid: i32,
    /// Its installation.
    pub group: String,
    /// Its term.
    #[serde(serialize_with = "number")]
    pub term: Term,
    /// Since when.
    #[serde(serialize_with = "text")]
    pub since: Timestamp,
    /// Identity of the term.
    #[serde(skip)]
    pub term_id: Uuid,
}

impl Leader {
    /// Named by its installation alone; its row may stand for one projection of it.
    #[must_use]
    pub fn of(mut self, group: &str) -> Self {
        group.clone_into(&mut self.group);
        self
    }
}

/// Who leads now: the row of the newest term whose session really holds the lock.
///
/// `None` when nobody holds the lock, or when the holder has not claimed a term (yet).
///
/// # Errors
/// When one of the databases fails.
pub async fn current_leader(
    lock: &mut PgConnection,
    read_model: &mut PgConnection,
    key: Key,
    control: &Identifier,
) -> Result<Option<Leader>, Error> {
    let Some(holder) = holder_of(lock, key).await? else {
        return Ok(None);
    };
    term_of(read_model, control, holder.backend_pid).await
}

/// The session that holds a key, if any.
///
/// # Errors
/// When the database fails.
pub async fn holder_of(connection: &mut PgConnection, key: Key) -> Result<Option<Holder>, Error> {
    let tag = key.tag();
    let row = sqlx::query(include_str!("holder/holder_of.sql"))
        .bind(tag.classid)
        .bind(tag.objid)
        .bind(tag.objsubid)
        .fetch_optional(connection)
        .await?;
    row.map(|row| {
        let application_name: String = row.try_get(1)?;
        let (group, node) = identity(&application_name).unzip();
        Ok(Holder {
            node,
            host: None,
            backend_pid: row.try_get(0)?,
            group,
            application_name,
            since: None,
        })
    })
    .transpose()
}

/// The unreleased term of a lock session.
///
/// # Errors
/// When the database fails.
pub async fn term_of(
    read_model: &mut PgConnection,
    control: &Identifier,
    backend_pid: i32,
) -> Result<Option<Leader>, Error> {
    let sql = include_str!("holder/term_of.sql").replace("{control}", &control.quoted());
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(backend_pid)
        .fetch_optional(read_model)
        .await?;
    row.map(|row| {
        Ok(Leader {
            group: row.try_get(0)?,
            term: Term(row.try_get(1)?),
            term_id: row.try_get(2)?,
            node: row.try_get(3)?,
            host: row.try_get(4)?,
            backend_pid,
            since: timestamp(&row, 5)?,
        })
    })
    .transpose()
}

/// A time that SQL gave as whole microseconds since 1970.
pub(super) fn timestamp(row: &PgRow, index: usize) -> Result<Timestamp, Error> {
    Timestamp::from_microsecond(row.try_get(index)?)
        .map_err(|error| Error::Driver(error.to_string()))
}

/// `projector/<group>/<node>/lock` → group and node.
pub(super) fn identity(application_name: &str) -> Option<(String, String)> {
    let rest = application_name.strip_prefix("projector/")?;
    let (group, rest) = rest.split_once('/')?;
    let (node, _purpose) = rest.rsplit_once('/')?;
    Some((group.to_owned(), node.to_owned()))
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
fn number<S: serde::Serializer>(term: &Term, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(term.0)
}

fn text<S: serde::Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_and_node_stand_in_the_application_name() {
        for (name, expected) in [
            (
                "projector/default/replica-1/lock",
                Some(("default", "replica-1")),
            ),
            ("projector/g/a/b/lock", Some(("g", "a/b"))),
            ("psql", None),
            ("", None),
            ("projector/half", None),
        ] {
            let found = identity(name);
            let found = found.as_ref().map(|(g, n)| (g.as_str(), n.as_str()));
            assert_eq!(found, expected, "{name}");
        }
    }
}
