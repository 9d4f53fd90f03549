//! `pause`: stops a projection after its running batch, until it is resumed.

use super::Context;
use super::control::{Changed, change};
use crate::error::Failure;

/// Arguments of `pause`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The projection
    pub name: String,
    /// Why, for those who look at it later
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Pauses.
///
/// # Errors
/// When there is no such projection, or the database cannot be asked.
pub async fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let reason = args.reason.as_deref();
    let changed = change(context, &args.name, async |control, connection, actor| {
        control.pause(connection, &args.name, reason, actor).await
    })
    .await?;
    context.out.text(&match changed {
        Changed::Yes => format!("{} is paused\n", args.name),
        Changed::No => format!("{} was paused already\n", args.name),
    })
}
