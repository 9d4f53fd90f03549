//! `abandon`: retires a projection, with its tables and everything that is recorded of it.

use serde_json::json;

use super::Context;
use super::control::{actor, known, limited, open};
use super::output::FormatArg;
use crate::error::{Code, Exit, Failure};
use crate::read_model::abandon::abandon;
use crate::read_model::folders;

/// A plugin file is there, with which the projection would begin again.
const STILL_OFFERED: Code = Code(832);

const AFTER_HELP: &str = "\
Examples:
  rm plugins/order.wasm                        on every replica; its state becomes no-plugin
  projector-host abandon order --all           asks, then drops tables, views, letters and checkpoint

Works without a leader, too. Nothing of it can be taken back: put the file back, and the projection begins anew.";

/// Arguments of `abandon`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The projection
    pub name: String,
    /// All of it: tables, views, dead letters, checkpoint and kept plugin
    #[arg(long, required = true)]
    pub all: bool,
    /// Do not ask
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// The form of the answer.
    #[command(flatten)]
    pub format: FormatArg,
}

/// Retires.
///
/// # Errors
/// When a replica still has a file for it, when nobody says yes, or when the database refuses.
pub async fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let config = &context.config.config;
    let (control, mut connection) = open(context).await?;
    let name = &args.name;
    let stands = known(&control, &mut connection, name).await?;
    let words = limited(folders::newest(&mut connection, control.schema())).await?;
    let offers = words
        .iter()
        .find(|word| word.projections.get(name).is_some());
    if let Some(word) = offers {
        return Err(Failure::coded(
            Exit::Failed,
            STILL_OFFERED,
            format!(
                "{} ({}:{}) has a plugin file for {name}, with which it would begin again",
                word.node, word.folder.host, word.folder.dir
            ),
        ));
    }
    let question = format!(
        "Abandon {name} at position {}? Its tables, views, dead letters and checkpoint are dropped for good.",
        stands.position
    );
    context.out.confirm(&question, args.yes)?;
    let (readers, actor) = (&config.read_model.schema, actor());
    let retiring = abandon(&mut connection, control.schema(), readers, name, &actor);
    let gone = limited(retiring).await?;
    if args.format.is_json() {
        return context.out.json(&json!({
            "projection": name,
            "abandoned": gone.is_some(),
            "tables": gone.as_ref().map(|gone| &gone.tables),
            "letters": gone.as_ref().map(|gone| gone.letters),
        }));
    }
    context.out.text(&match gone {
        Some(gone) => format!(
            "{name} is gone: {} tables, {} dead letters\n",
            gone.tables.len(),
            gone.letters
        ),
        None => format!("{name} was gone already\n"),
    })
}
