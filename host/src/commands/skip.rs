//! `skip`: passes over the one event at which a projection stands failed; the event becomes a dead letter.

use serde_json::json;

use super::Context;
use super::control::{actor, known, limited, open};
use super::output::FormatArg;
use crate::error::{Code, Exit, Failure};
use crate::read_model::control::{Projection, Skipped};

/// The projection does not stand failed at this position.
const STANDS_ELSEWHERE: Code = Code(811);

const AFTER_HELP: &str = "\
Examples:
  projector-host status                         order stopped at position 41207
  projector-host skip order --position 41207    the event becomes a dead letter, order goes on

Only the position at which the projection stands failed is accepted. What was skipped can be tried again: see \
`projector-host dead-letter`.";

/// Arguments of `skip`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The projection
    pub name: String,
    /// Where the event stands that cannot pass, as `status` says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    pub position: i64,
    /// The form of the answer.
    #[command(flatten)]
    pub format: FormatArg,
}

/// Skips.
///
/// # Errors
/// When the projection does not stand failed at the position, or the database cannot be asked.
pub async fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let (control, mut connection) = open(context).await?;
    let stands = known(&control, &mut connection, &args.name).await?;
    let actor = actor();
    let skipping = control.skip(&mut connection, &args.name, args.position, &actor);
    let skipped = match limited(skipping).await? {
        Skipped::Yes => true,
        Skipped::Already => false,
        Skipped::StandsElsewhere => return Err(refused(&args, &stands)),
    };
    if args.format.is_json() {
        return context.out.json(&json!({
            "projection": args.name,
            "position": args.position,
            "skipped": skipped,
        }));
    }
    let word = if skipped { "is" } else { "was already" };
    context.out.text(&format!(
        "the event at position {} {word} a dead letter of {}",
        args.position, args.name
    ))
}

fn refused(args: &Args, stands: &Projection) -> Failure {
    let how = match stands.failure.as_ref() {
        Some(failure) => match failure.position {
            Some(position) => format!("it stands failed at position {position}"),
            None => format!(
                "it stopped ({}) at no event, so there is nothing to skip: {}",
                failure.category, failure.message
            ),
        },
        None => format!(
            "it has not failed: its state is {}, at position {}",
            stands.state, stands.position
        ),
    };
    Failure::coded(
        Exit::Failed,
        STANDS_ELSEWHERE,
        format!(
            "{} does not stand failed at position {}; {how}",
            args.name, args.position
        ),
    )
}
