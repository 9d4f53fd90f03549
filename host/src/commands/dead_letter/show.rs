//! `dead-letter show`: one letter, with its event as the event store holds it.

use serde_json::{Value, json};

use super::answer::{Letter, time};
use super::list::state;
use super::refused;
use crate::app::gate::Databases;
use crate::commands::Context;
use crate::commands::control::{limited, open};
use crate::commands::output::{FormatArg, plain};
use crate::database::session::Purpose;
use crate::error::Failure;
use crate::event_store::event::{Event, Position};
use crate::event_store::inspect;
use crate::event_store::layout::Layout;
use crate::read_model::dead_letter::{Described, Filter, Letters, Refusal};

/// Arguments of `dead-letter show`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The letter's number, as `list` shows it
    #[arg(value_name = "ID", value_parser = clap::value_parser!(i64).range(1..))]
    id: i64,
    /// The form of the answer.
    #[command(flatten)]
    format: FormatArg,
}

pub(super) async fn run(args: &Args, context: &Context, letters: &Letters) -> Result<(), Failure> {
    let (_, mut connection) = open(context).await?;
    let filter = Filter {
        resolved: true,
        ids: Some(&[args.id]),
        ..Filter::default()
    };
    let found = limited(letters.list(&mut connection, filter)).await?;
    let Some(letter) = found.first() else {
        return Err(refused(&Refusal::Unknown(args.id), "shown"));
    };
    // The letter can be shown without its event; the reverse would help nobody.
    let event = event(context, letter).await;
    if args.format.is_json() {
        let (event, missing) = match event {
            Ok(event) => (json_of(&event), None),
            Err(why) => (Value::Null, Some(why)),
        };
        return context.out.json(&json!({
            "dead_letter": Letter::from(letter),
            "event": event,
            "event_missing": missing,
        }));
    }
    context.out.text(&text(letter, &event))
}

async fn event(context: &Context, letter: &Described) -> Result<Event, String> {
    let config = &context.config.config;
    let databases = Databases::of(config).map_err(|failure| failure.to_string())?;
    let opening = databases.event_store.connect(&Purpose::Admin);
    let mut store = opening.await.map_err(|error| error.to_string())?;
    let layout = Layout::Projector {
        schema: config.event_store.schema.clone(),
    };
    let found = inspect::event(&mut store, &layout, Position(letter.position))
        .await
        .map_err(|error| error.to_string())?;
    match found {
        Some(event) if event.id == letter.event_id => Ok(event),
        Some(event) => Err(format!(
            "position {} holds the event {} now",
            letter.position, event.id
        )),
        None => Err(format!("position {} holds no event", letter.position)),
    }
}

fn json_of(event: &Event) -> Value {
    let parsed = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    json!({
        "position": event.position.0,
        "id": event.id,
        "stream": event.stream,
        "version": event.version,
        "type": event.event_type,
        "schema_version": event.schema_version,
        "recorded_at": time(event.recorded_at),
        "data": parsed(&event.data),
        "metadata": parsed(&event.metadata),
    })
}

fn text(letter: &Described, event: &Result<Event, String>) -> String {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let mut lines = vec![
        ("dead letter", letter.id.to_string()),
        (
            "projection",
            format!("{} (generation {})", letter.projection, letter.generation),
        ),
        ("state", state(letter)),
        ("position", letter.position.to_string()),
        ("stream", letter.stream.clone()),
        ("type", letter.event_type.clone()),
        ("event id", letter.event_id.clone()),
        ("category", letter.category.clone()),
        ("message", letter.message.clone()),
        ("table", or_none(&letter.table)),
        ("column", or_none(&letter.column)),
        ("attempts", letter.attempts.to_string()),
        ("since", time(letter.created_at).unwrap_or_default()),
        ("last failed", time(letter.failed_at).unwrap_or_default()),
    ];
    match event {
        Ok(event) => {
            lines.push(("recorded", time(event.recorded_at).unwrap_or_default()));
            lines.push(("data", event.data.clone()));
            lines.push(("metadata", event.metadata.clone()));
        }
        Err(why) => lines.push(("event", format!("cannot be shown: {why}"))),
    }
    lines
        .into_iter()
        .map(|(name, value)| format!("{name:<12} {}\n", plain::block(&value, 13)))
        .collect()
}
