//! `resume`: clears a pause or a failure; the projection goes on where it stands.

use super::Context;
use super::control::{Changed, change};
use crate::error::Failure;

/// Arguments of `resume`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The projection
    pub name: String,
    /// Go on with the plugin file that is there now, although the rows were made by another one
    #[arg(long)]
    pub accept_plugin: bool,
    /// Go on with the event store as it is now, although it is not the one that was read before
    #[arg(long, conflicts_with = "accept_plugin")]
    pub accept_store: bool,
}

/// Resumes.
///
/// # Errors
/// When there is no such projection, or the database cannot be asked.
pub async fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let accepted = match (args.accept_plugin, args.accept_store) {
        (true, _) => Some("plugin"),
        (_, true) => Some("store"),
        _ => None,
    };
    let changed = change(context, &args.name, async |control, connection, actor| {
        control
            .resume(connection, &args.name, accepted, actor)
            .await
    })
    .await?;
    context.out.text(&match changed {
        Changed::Yes => format!("{} goes on\n", args.name),
        Changed::No => format!("{} was neither paused nor stopped\n", args.name),
    })
}
