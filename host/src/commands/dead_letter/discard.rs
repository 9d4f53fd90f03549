//! `dead-letter discard`: gives letters up.

use serde_json::json;

use super::answer::{letters as shapes, numbers};
use super::{Ids, refused};
use crate::commands::Context;
use crate::commands::control::{actor, limited, open};
use crate::error::Failure;
use crate::read_model::dead_letter::Letters;

/// Arguments of `dead-letter discard`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    ids: Ids,
    /// Do not ask
    #[arg(short = 'y', long)]
    yes: bool,
}

pub(super) async fn run(args: &Args, context: &Context, letters: &Letters) -> Result<(), Failure> {
    let ids = &args.ids.ids;
    let question = match &**ids {
        [id] => format!("Discard dead letter {id}? Its event will never be applied."),
        ids => format!(
            "Discard {} dead letters? Their events will never be applied.",
            ids.len()
        ),
    };
    context.out.confirm(&question, args.yes)?;
    let (_, mut connection) = open(context).await?;
    let done = limited(letters.discard(&mut connection, ids, &actor()))
        .await?
        .map_err(|refusal| refused(&refusal, "discarded"))?;
    if args.ids.format.is_json() {
        return context.out.json(&json!({
            "discarded": shapes(&done.changed),
            "unchanged": shapes(&done.unchanged),
        }));
    }
    let mut text = String::new();
    if !done.changed.is_empty() {
        text += &format!("discarded: {}\n", numbers(&done.changed));
    }
    if !done.unchanged.is_empty() {
        text += &format!("discarded before: {}\n", numbers(&done.unchanged));
    }
    context.out.text(&text)?;
    let behind = |letter: &&crate::read_model::dead_letter::Described| {
        letter.parked && letter.first == Some(letter.id) && letter.behind > 0
    };
    for letter in done.changed.iter().filter(behind) {
        context.out.note(&format!(
            "{} more of the stream {:?} wait: `projector-host dead-letter list {}` shows them, `dead-letter retry ID \
             --following` with the first of them applies them in order",
            letter.behind, letter.stream, letter.projection
        ));
    }
    Ok(())
}
