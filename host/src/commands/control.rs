//! What the commands that change a projection share: the session, the actor, the name's check.

use std::time::Duration;

use sqlx::postgres::PgConnection;

use super::Context;
use crate::app::gate::Databases;
use crate::database::error::Error as DatabaseError;
use crate::database::migrate::{self, Target};
use crate::database::session::{Purpose, bounded};
use crate::error::{Exit, Failure};
use crate::read_model::control::{Control, Projection};

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
    let (control, mut connection) = open(context).await?;
    known(&control, &mut connection, name).await?;
    let changed = limited(call(&control, &mut connection, &actor())).await?;
    Ok(if changed { Changed::Yes } else { Changed::No })
}

/// A session to control tables that this version may change.
pub(super) async fn open(context: &Context) -> Result<(Control, PgConnection), Failure> {
    let config = &context.config.config;
    let databases = Databases::of(config)?;
    let mut connection = databases.read_model.connect(&Purpose::Admin).await?;
    let target = Target::read_model(config.read_model.control_schema.clone());
    migrate::check(&mut connection, &target).await?;
    Ok((
        Control::new(config.read_model.control_schema.clone()),
        connection,
    ))
}

/// The projection of this name, or a failure that says which there are.
pub(super) async fn known(
    control: &Control,
    connection: &mut PgConnection,
    name: &str,
) -> Result<Projection, Failure> {
    let all = limited(control.list(connection)).await?;
    let names: Vec<String> = all.iter().map(|row| row.name.clone()).collect();
    let found = all.into_iter().find(|row| row.name == name);
    found.ok_or_else(|| unknown(name, &names))
}

/// One step on the control tables, within the bound of a change.
pub(super) async fn limited<T>(
    step: impl Future<Output = Result<T, DatabaseError>>,
) -> Result<T, Failure> {
    Ok(bounded("read model", CHANGE_TIMEOUT, step).await?)
}

/// There is no projection of this name.
pub(super) fn unknown(name: &str, known: &[String]) -> Failure {
    let hint = match near(name, known) {
        Some(near) => format!("did you mean {near}?"),
        None if known.is_empty() => "no replica has led with this control schema yet".to_owned(),
        None => format!("there is {}", known.join(", ")),
    };
    Failure::new(
        Exit::Failed,
        format!("there is no projection {name:?}; {hint}"),
    )
}

/// The name that somebody may have meant.
pub(super) fn near<'k>(name: &str, known: &'k [String]) -> Option<&'k String> {
    known
        .iter()
        .max_by(|a, b| strsim::jaro(name, a).total_cmp(&strsim::jaro(name, b)))
        .filter(|near| strsim::jaro(name, near) > 0.7)
}

/// Who does it, for the audit.
pub(super) fn actor() -> String {
    format!("cli@{}", gethostname::gethostname().to_string_lossy())
}
