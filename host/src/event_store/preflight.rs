//! What must hold before a store is read: the proof of gaps stands on it.

use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row as _};

use super::error::Error;
use super::event::Position;
use super::inspect;
use super::layout::Layout;

/// Which store it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreIdentity {
    /// Its name in the control tables: table and database.
    pub source: String,
    /// Of the cluster; copies and standbys have the same.
    pub system_identifier: String,
    /// Rises with each promotion.
    pub timeline: String,
    /// Database and table by their object identifiers: another database of the same name has others. Means
    /// something only as long as the same server runs, so nobody writes it down.
    pub incarnation: String,
}

/// Where positions come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sequence {
    name: String,
    table: String,
    /// Whether we may see it.
    is_readable: bool,
}

impl Sequence {
    /// SQL that gives the last number drawn; null where we may not see it. A sequence that was told where to begin
    /// and has drawn nothing since counts as standing right before that.
    pub(super) fn last_drawn(&self) -> String {
        match self.is_readable {
            true => include_str!("sql/last_drawn.sql").replace("{sequence}", &self.name),
            false => "SELECT NULL::bigint".to_owned(),
        }
    }

    /// Makes sure that the next number is a new one: the last number drawn, where we may see it, reaches the head.
    ///
    /// # Errors
    /// When later events would get positions that readers have passed.
    pub(super) fn reaches(&self, drawn: Option<Position>, head: Position) -> Result<(), Error> {
        match drawn {
            Some(drawn) if drawn < head => Err(Error::UnsafeSequence {
                table: self.table.clone(),
                why: format!(
                    "it has handed out numbers up to {drawn}, but events stand up to position {head}, so the next ones \
                     would stand where readers have passed"
                ),
                remedy: format!(
                    "SELECT setval('{}', (SELECT max(position) FROM {}))",
                    self.name, self.table
                ),
            }),
            _ => Ok(()),
        }
    }
}

/// A store that may be read.
#[derive(Debug, Clone)]
pub(super) struct Checked {
    pub(super) identity: StoreIdentity,
    pub(super) table: Oid,
    pub(super) sequence: Sequence,
}

/// Checks a store on a new session.
pub(super) async fn check(
    connection: &mut PgConnection,
    layout: &Layout,
) -> Result<Checked, Error> {
    let row = sqlx::query(include_str!("sql/preflight.sql"))
        .bind(layout.table())
        .fetch_one(&mut *connection)
        .await?;
    if row.try_get::<bool, _>(0)? {
        return Err(Error::Standby);
    }
    let Layout::Projector { schema } = layout;
    let Some(table) = row.try_get::<Option<Oid>, _>(1)? else {
        return Err(Error::NoTable(schema.clone()));
    };
    hidden(&row, layout)?;
    let cache: Option<i64> = row.try_get(2)?;
    let unsafe_sequence = |why: &str, remedy: &str| Error::UnsafeSequence {
        table: layout.table(),
        why: why.to_owned(),
        remedy: remedy.to_owned(),
    };
    let Some(cache) = cache else {
        return Err(unsafe_sequence(
            "the column `position` draws no number by itself",
            &format!(
                "ALTER TABLE {} ALTER COLUMN position ADD GENERATED ALWAYS AS IDENTITY",
                layout.table()
            ),
        ));
    };
    let (increment, cycle, name): (i64, bool, String) =
        (row.try_get(3)?, row.try_get(4)?, row.try_get(5)?);
    if cache != 1 {
        let why = format!("CACHE {cache} hands numbers to sessions that use them later");
        return Err(unsafe_sequence(
            &why,
            &format!("ALTER SEQUENCE {name} CACHE 1"),
        ));
    }
    if increment != 1 {
        let why = format!("INCREMENT {increment} makes every position look like a gap");
        return Err(unsafe_sequence(
            &why,
            &format!("ALTER SEQUENCE {name} INCREMENT 1"),
        ));
    }
    if cycle {
        return Err(unsafe_sequence(
            "CYCLE repeats positions",
            &format!("ALTER SEQUENCE {name} NO CYCLE"),
        ));
    }
    let database: String = row.try_get(8)?;
    let sequence = Sequence {
        name,
        table: layout.table(),
        is_readable: row.try_get(10)?,
    };
    // Asked before the table, a sequence could seem to be behind it.
    let head = inspect::head(&mut *connection, layout).await?;
    let drawn: Option<i64> = sqlx::query_scalar(AssertSqlSafe(sequence.last_drawn()))
        .fetch_one(connection)
        .await?;
    sequence.reaches(drawn.map(Position), head)?;
    Ok(Checked {
        identity: StoreIdentity {
            source: format!("{schema}.events@{database}"),
            system_identifier: row.try_get::<Option<String>, _>(6)?.unwrap_or_default(),
            timeline: row.try_get::<Option<String>, _>(7)?.unwrap_or_default(),
            incarnation: row.try_get(9)?,
        },
        table,
        sequence,
    })
}

/// Whether a SELECT shows every event: nothing stands between the reader and the rows.
fn hidden(row: &PgRow, layout: &Layout) -> Result<(), Error> {
    let table = layout.table();
    let (kind, user): (String, String) = (row.try_get(11)?, row.try_get(12)?);
    let (is_secured, may_select): (bool, bool) = (row.try_get(13)?, row.try_get(14)?);
    let (has_rules, has_heirs): (bool, bool) = (row.try_get(15)?, row.try_get(16)?);
    let (why, remedy) = if !matches!(kind.as_str(), "r" | "p") {
        (
            "it is no table, and what stands behind it cannot be proven".to_owned(),
            "name the schema of the table itself in [event_store] schema".to_owned(),
        )
    } else if !may_select {
        (
            format!("the role {user} may not read all its columns"),
            format!("run `GRANT SELECT ON {table} TO {user}`"),
        )
    } else if is_secured {
        (
            format!("row-level security applies to the role {user}"),
            format!(
                "read as a role with BYPASSRLS, or run `ALTER TABLE {table} DISABLE ROW LEVEL SECURITY`"
            ),
        )
    } else if has_rules {
        (
            "rules rewrite what is written to it".to_owned(),
            format!("drop them (`\\d {table}` lists them)"),
        )
    } else if has_heirs {
        (
            "other tables inherit from it, with positions of their own".to_owned(),
            "make them partitions, or end their inheritance".to_owned(),
        )
    } else {
        return Ok(());
    };
    Err(Error::Hidden { table, why, remedy })
}

/// Checks a store on a new session, and that it is the one that is known.
pub(super) async fn check_known(
    connection: &mut PgConnection,
    layout: &Layout,
    known: Option<&StoreIdentity>,
) -> Result<Checked, Error> {
    let checked = check(connection, layout).await?;
    match known {
        Some(known) if *known != checked.identity => {
            let seen = &checked.identity;
            Err(Error::OtherStore(format!(
                "system {} timeline {} with the database and table {} instead of system {} timeline {} with {}",
                seen.system_identifier,
                seen.timeline,
                seen.incarnation,
                known.system_identifier,
                known.timeline,
                known.incarnation,
            )))
        }
        _ => Ok(checked),
    }
}

/// Checks a store and tells which one it is.
///
/// # Errors
/// When it cannot be read, or not safely.
pub async fn identify(
    connection: &mut PgConnection,
    layout: &Layout,
) -> Result<StoreIdentity, Error> {
    Ok(check(connection, layout).await?.identity)
}
