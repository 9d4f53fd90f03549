//! `dead-letter list`.

use serde_json::json;

use super::answer::{letters as shapes, time};
use crate::commands::Context;
use crate::commands::control::{known, limited, open};
use crate::commands::output::FormatArg;
use crate::error::Failure;
use crate::read_model::dead_letter::{Described, Filter, Letters};

const COLUMNS: [&str; 8] = [
    "ID",
    "PROJECTION",
    "POSITION",
    "STREAM",
    "TYPE",
    "CATEGORY",
    "SINCE",
    "STATE",
];

/// Arguments of `dead-letter list`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Only of this projection
    #[arg(value_name = "PROJECTION")]
    projection: Option<String>,
    /// Also those that were retried or discarded
    #[arg(long)]
    all: bool,
    /// At most so many; 0 for all
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(i64).range(0..))]
    limit: i64,
    /// The form of the answer.
    #[command(flatten)]
    format: FormatArg,
}

pub(super) async fn run(args: &Args, context: &Context, letters: &Letters) -> Result<(), Failure> {
    let (control, mut connection) = open(context).await?;
    if let Some(name) = &args.projection {
        known(&control, &mut connection, name).await?;
    }
    let filter = Filter {
        projection: args.projection.as_deref(),
        resolved: args.all,
        ids: None,
        // One more tells whether there are more.
        letters_max: if args.limit == 0 { 0 } else { args.limit + 1 },
    };
    let mut found = limited(letters.list(&mut connection, filter)).await?;
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let more = limit > 0 && found.len() > limit;
    if more {
        found.truncate(limit);
    }
    if args.format.is_json() {
        let answer = json!({ "dead_letters": shapes(&found), "more": more });
        return context.out.json(&answer);
    }
    if found.is_empty() {
        return context.out.text("no dead letters");
    }
    context.out.table(&COLUMNS, found.iter().map(row))?;
    if more {
        context.out.note(&format!(
            "there are more than {limit}; `--limit 0` shows all"
        ));
    }
    Ok(())
}

fn row(letter: &Described) -> Vec<String> {
    vec![
        letter.id.to_string(),
        letter.projection.clone(),
        letter.position.to_string(),
        letter.stream.clone(),
        letter.event_type.clone(),
        letter.category.clone(),
        time(letter.created_at).unwrap_or_default(),
        state(letter),
    ]
}

/// How it stands, in a word or two.
pub(super) fn state(letter: &Described) -> String {
    if let Some((_, how)) = &letter.resolved {
        return how.clone();
    }
    let mut words = match (letter.parked, letter.first == Some(letter.id)) {
        (true, true) => format!("parked, {} behind", letter.behind),
        (true, false) => "waits".to_owned(),
        (false, _) => "skipped".to_owned(),
    };
    if letter.retry_at.is_some() {
        words.push_str(", to be tried");
    }
    words
}
