//! What must hold before a store is read: the proof of gaps stands on it.

use sqlx::Row as _;
use sqlx::postgres::PgConnection;
use sqlx::postgres::types::Oid;

use super::error::Error;
use super::event::Position;
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
}

/// A store that may be read.
#[derive(Debug, Clone)]
pub(super) struct Checked {
    pub(super) identity: StoreIdentity,
    pub(super) table: Oid,
    /// The last position that was drawn, if we may see it.
    pub(super) last_drawn: Option<Position>,
}

/// Checks a store on a new session.
pub(super) async fn check(
    connection: &mut PgConnection,
    layout: &Layout,
) -> Result<Checked, Error> {
    let row = sqlx::query(include_str!("sql/preflight.sql"))
        .bind(layout.table())
        .fetch_one(connection)
        .await?;
    if row.try_get::<bool, _>(0)? {
        return Err(Error::Standby);
    }
    let Layout::Projector { schema } = layout;
    let Some(table) = row.try_get::<Option<Oid>, _>(1)? else {
        return Err(Error::NoTable(schema.clone()));
    };
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
    Ok(Checked {
        identity: StoreIdentity {
            source: format!("{schema}.events@{database}"),
            system_identifier: row.try_get::<Option<String>, _>(6)?.unwrap_or_default(),
            timeline: row.try_get::<Option<String>, _>(7)?.unwrap_or_default(),
        },
        table,
        last_drawn: row.try_get::<Option<i64>, _>(9)?.map(Position),
    })
}

/// Checks a store on a new session, and that it is the one that is known.
pub(super) async fn check_known(
    connection: &mut PgConnection,
    layout: &Layout,
    known: Option<&StoreIdentity>,
) -> Result<Checked, Error> {
    let checked = check(connection, layout).await?;
    match known {
        Some(known) if *known != checked.identity => Err(Error::OtherStore(format!(
            "system {} timeline {} instead of system {} timeline {}",
            checked.identity.system_identifier,
            checked.identity.timeline,
            known.system_identifier,
            known.timeline
        ))),
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
