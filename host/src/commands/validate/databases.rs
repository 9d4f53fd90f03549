//! Checks of the two databases: reachable, recent enough, no standby.

use sqlx::{PgConnection, Row as _};

use super::Finding;
use crate::config::{Config, Fault};
use crate::database::error::Error;
use crate::database::session::{Database, Purpose};
use crate::error::Exit;

/// Oldest major version of PostgreSQL that the host works with.
const VERSION_MIN: i32 = 14;

/// What is wrong with the databases; those without a URL are left to the check of secrets.
pub(super) async fn check(config: &Config) -> Vec<Finding> {
    let (events, rows) = tokio::join!(
        one(config.event_store_database()),
        one(config.read_model_database()),
    );
    events.into_iter().chain(rows).collect()
}

async fn one(database: Result<Database, Fault>) -> Vec<Finding> {
    let Ok(database) = database else {
        return Vec::new();
    };
    let place = format!("{} database", database.name);
    let mut connection = match database.connect(&Purpose::Admin).await {
        Ok(connection) => connection,
        Err(error) => return vec![unusable(&place, &error)],
    };
    match server(&place, &mut connection).await {
        Ok(findings) => findings,
        Err(error) => vec![unusable(&place, &error)],
    }
}

async fn server(place: &str, connection: &mut PgConnection) -> Result<Vec<Finding>, Error> {
    let row = sqlx::query(include_str!("server.sql"))
        .fetch_one(&mut *connection)
        .await?;
    let version: i32 = row.try_get("version")?;
    let in_recovery: bool = row.try_get("in_recovery")?;
    let mut findings = Vec::new();
    if version / 10_000 < VERSION_MIN {
        findings.push(
            Finding::error(
                Exit::Config,
                place,
                format!("the server is PostgreSQL {}", version / 10_000),
            )
            .hint(format!("PostgreSQL {VERSION_MIN} or later is needed")),
        );
    }
    if in_recovery {
        findings.push(
            Finding::error(Exit::Config, place, "the server is a standby")
                .hint("name the primary: locks and open transactions of writers show only there"),
        );
    }
    Ok(findings)
}

fn unusable(place: &str, error: &Error) -> Finding {
    Finding::error(Exit::Unavailable, place, error.to_string())
        .hint("check that the server runs, and host, database, user and password of its URL")
}
