//! `resume`: clears a pause or a failure; the projection goes on where it stands.

use super::Context;
use super::control::{Changed, change};
use crate::error::Failure;

/// Arguments of `resume`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The projection
    pub name: String,
}

/// Resumes.
///
/// # Errors
/// When there is no such projection, or the database cannot be asked.
pub async fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let changed = change(context, &args.name, async |control, connection, actor| {
        control.resume(connection, &args.name, actor).await
    })
    .await?;
    context.out.text(&match changed {
        Changed::Yes => format!("{} goes on\n", args.name),
        Changed::No => format!("{} was neither paused nor stopped\n", args.name),
    })
}
