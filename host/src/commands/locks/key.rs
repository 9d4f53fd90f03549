//! `locks key`: the key of a name, for whoever takes the lock in another language.

use serde::Serialize;

use crate::advisory_lock::key::Key;
use crate::commands::output::{FormatArg, Output};
use crate::error::{Exit, Failure};

/// Arguments of `locks key`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the lock
    name: String,
    /// Namespace of the name
    #[arg(long, value_name = "NS", default_value = "")]
    namespace: String,
    #[command(flatten)]
    output: FormatArg,
}

/// What `-o json` prints. Keys stand as text too, since many readers of JSON round large numbers.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    namespace: &'a str,
    name: &'a str,
    key: i64,
    key_text: String,
    slot_class: i32,
}

/// Prints the key.
///
/// # Errors
/// [`Exit::Usage`] for an empty name.
pub fn run(args: &Args, out: &Output) -> Result<(), Failure> {
    if args.name.is_empty() {
        return Err(Failure::new(Exit::Usage, "a lock needs a name"));
    }
    let (Key::Single(key), Key::Pair(slot_class, _)) = (
        Key::derive(&args.namespace, &args.name),
        Key::slot(&args.namespace, &args.name, 0),
    ) else {
        return Err(Failure::new(Exit::Bug, "a key of the wrong form"));
    };
    if args.output.is_json() {
        return out.json(&Answer {
            namespace: &args.namespace,
            name: &args.name,
            key,
            key_text: key.to_string(),
            slot_class,
        });
    }
    out.text(&key.to_string())
}
