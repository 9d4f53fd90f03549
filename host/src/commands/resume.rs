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
    context.out.text(&answer(&args.name, accepted, changed))
}

fn answer(name: &str, accepted: Option<&str>, changed: Changed) -> String {
    let taken = match accepted {
        Some("store") => "the event store",
        _ => "the plugin file",
    };
    match (changed, accepted) {
        (Changed::Yes, None) => format!("{name} goes on\n"),
        (Changed::Yes, Some(_)) => {
            format!(
                "{name} goes on; if {taken} is another one, the leader takes it as it finds it\n"
            )
        }
        (Changed::No, None) => format!("{name} was neither paused nor stopped\n"),
        (Changed::No, Some(_)) => {
            format!(
                "nothing changed: the leader may take {taken} of {name} as it finds it already\n"
            )
        }
    }
}
