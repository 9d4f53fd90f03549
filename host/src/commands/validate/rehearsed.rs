//! Checks whether projections that have not begun could: their tables are made in a transaction that is rolled back,
//! and the control tables are asked for what this role may do.

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use super::Finding;
use crate::config::Config;
use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::database::migrate::{self, DENIED, READ_ONLY, Target};
use crate::database::session::{Purpose, bounded};
use crate::error::{Code, Exit};
use crate::plugin::Loaded;
use crate::read_model::schema;

/// Longest wait for one answer.
const ANSWER_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// What would not work. A database that cannot be asked is left to its own check.
pub(super) async fn check(config: &Config, loaded: &Loaded) -> Vec<Finding> {
    let Ok(database) = config.read_model_database() else {
        return Vec::new();
    };
    let control = &config.read_model.control_schema;
    let Ok(mut connection) = database.connect(&Purpose::Admin).await else {
        return Vec::new();
    };
    let target = Target::read_model(control.clone());
    if migrate::check(&mut connection, &target).await.is_err() {
        return Vec::new();
    }
    let place = format!("{} database", database.name);
    let asking = rights(&mut connection, control);
    let mut findings = match bounded(database.name, ANSWER_TIMEOUT, asking).await {
        Ok(missing) => missing
            .into_iter()
            .map(|what| {
                Finding::error(
                    Exit::Config,
                    place.clone(),
                    format!("this role lacks {what}"),
                )
                .code(DENIED)
            })
            .collect(),
        Err(_) => Vec::new(),
    };
    for plugin in &loaded.plugins {
        let name = &plugin.manifest.name;
        if !matches!(schema::live(&mut connection, control, name).await, Ok(None)) {
            continue;
        }
        let readers = &config.read_model.schema;
        let trying = schema::rehearse(&mut connection, control, readers, &plugin.manifest);
        match tokio::time::timeout(ANSWER_TIMEOUT, trying).await {
            Ok(Err(error)) => findings.extend(finding(name, &error)),
            Ok(Ok(())) => {}
            // What it did not answer is taken back when the session ends.
            Err(_) => return findings,
        }
    }
    findings
}

/// None for what says nothing of the plugin: a lock that is held, a server that went away.
fn finding(projection: &str, error: &schema::Error) -> Option<Finding> {
    let place = format!("projection {projection}");
    let text = error.to_string();
    let code = match error {
        schema::Error::Database(error) => match error.sqlstate()? {
            "42501" => DENIED,
            "25006" => READ_ONLY,
            state if state.starts_with("22") || state.starts_with("42") => Code(511),
            _ => return None,
        },
        _ => Code(703),
    };
    let message = Code::split(&text).map_or(text.as_str(), |(_, rest)| rest);
    let message = format!("its tables cannot be made: {message}");
    Some(Finding::error(Exit::Config, place, message).code(code))
}

/// Rights on the control tables that this role does not have.
async fn rights(
    connection: &mut PgConnection,
    control: &Identifier,
) -> Result<Vec<String>, DatabaseError> {
    let rows = sqlx::query(include_str!("rights.sql"))
        .bind(control.as_str())
        .fetch_all(connection)
        .await?;
    rows.iter()
        .map(|row| row.try_get(0))
        .collect::<Result<_, sqlx::Error>>()
        .map_err(DatabaseError::from)
}
