//! `dead-letter`: events that did not pass, and those that wait behind them. Works without any replica running.

mod answer;
mod discard;
mod list;
mod retry;
mod show;

use super::Context;
use super::output::FormatArg;
use crate::error::{Code, Exit, Failure};
use crate::read_model::dead_letter::{Letters, Refusal};

/// A letter that is not there, or cannot be taken now.
const REFUSED: Code = Code(812);

const AFTER_HELP: &str = "\
Examples:
  projector-host dead-letter list order
  projector-host dead-letter show 17                           with the event, read from the event store
  projector-host dead-letter retry 17 --following --wait       after the plugin was mended
  projector-host dead-letter discard 17 -y                     its event is never applied

In a parked stream only the first letter can be tried; the others follow in order.";

/// Arguments of `dead-letter`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do with dead letters.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// List them, oldest first
    List(list::Args),
    /// Show one, with its event
    Show(show::Args),
    /// Ask the leader to try them again, through the plugin as it is now
    Retry(retry::Args),
    /// Give them up: their events will never be applied
    Discard(discard::Args),
}

/// Letters that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub struct Ids {
    /// Numbers of dead letters, as `list` shows them
    #[arg(value_name = "ID", required = true, value_parser = clap::value_parser!(i64).range(1..))]
    pub ids: Vec<i64>,
    /// The form of the answer.
    #[command(flatten)]
    pub format: FormatArg,
}

/// Runs one of them.
///
/// # Errors
/// When there is no such letter, or a database cannot be asked.
pub async fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let letters = Letters::new(context.config.config.read_model.control_schema.clone());
    match args.command {
        Command::List(args) => list::run(&args, context, &letters).await,
        Command::Show(args) => show::run(&args, context, &letters).await,
        Command::Retry(args) => retry::run(&args, context, &letters).await,
        Command::Discard(args) => discard::run(&args, context, &letters).await,
    }
}

fn refused(refusal: &Refusal, wanted: &str) -> Failure {
    let message = match refusal {
        Refusal::Unknown(id) => {
            format!("there is no dead letter {id}; `projector-host dead-letter list` shows them")
        }
        Refusal::NotFirst { letter, first } => format!(
            "dead letter {} is not the first of its stream {:?}: {first} stands before it and is not asked for; \
             retry or discard {first} first, or name all of them",
            letter.id, letter.stream
        ),
        Refusal::Resolved(letter) => {
            let how = letter.resolved.as_ref().map_or("resolved", |(_, how)| how);
            format!("dead letter {} was {how} and cannot be {wanted}", letter.id)
        }
    };
    Failure::coded(
        Exit::Failed,
        REFUSED,
        format!("{message}; nothing was changed"),
    )
}
