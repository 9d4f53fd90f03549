//! What the commands that change a projection share: the session, the actor, the name's check.

use std::time::Duration;

use sqlx::postgres::PgConnection;

use super::Context;
use crate::app::gate::Databases;
use crate::database::error::Error as DatabaseError;
use crate::database::migrate::{self, Target};
use crate::database::session::{Purpose, bounded};
use crate::error::{Exit, Failure};
use crate::read_model::control::Control;

/// Longest wait for one change. A running batch holds the checkpoint's row for as long as it takes.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(40);

/// Whether anything changed: every such command may be given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    Yes,
    No,
}

/// Makes one change to a projection that is there.
pub(super) async fn change(
    context: &Context,
    name: &str,
    call: impl AsyncFnOnce(&Control, &mut PgConnection, &str) -> Result<bool, DatabaseError>,
) -> Result<Changed, Failure> {
    let config = &context.config.config;
    let databases = Databases::of(config)?;
    let control = Control::new(config.read_model.control_schema.clone());
    let mut connection = databases.read_model.connect(&Purpose::Admin).await?;
    let target = Target::read_model(config.read_model.control_schema.clone());
    migrate::check(&mut connection, &target).await?;
    let known = bounded("read model", CHANGE_TIMEOUT, control.list(&mut connection)).await?;
    if !known.iter().any(|row| row.name == name) {
        return Err(unknown(name, known.iter().map(|row| row.name.as_str())));
    }
    let changed = bounded(
        "read model",
        CHANGE_TIMEOUT,
        call(&control, &mut connection, &actor()),
    )
    .await?;
    Ok(if changed { Changed::Yes } else { Changed::No })
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    let known: Vec<&str> = known.collect();
    let near = known
        .iter()
        .max_by(|a, b| strsim::jaro(name, a).total_cmp(&strsim::jaro(name, b)));
    let hint = match near {
        Some(near) if strsim::jaro(name, near) > 0.7 => format!("did you mean {near}?"),
        _ if known.is_empty() => "no replica has led with this control schema yet".to_owned(),
        _ => format!("there is {}", known.join(", ")),
    };
    Failure::new(
        Exit::Failed,
        format!("there is no projection {name:?}; {hint}"),
    )
}

/// Who does it, for the audit.
pub(super) fn actor() -> String {
    format!("cli@{}", gethostname::gethostname().to_string_lossy())
}
