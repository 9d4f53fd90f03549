//! `config`: effective values with their sources, the JSON schema, a commented sample.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::json;

use super::output::{FormatArg, Output};
use crate::config::{Faults, Loaded, disk, schema};
use crate::error::{Exit, Failure};

/// A file with every option, its default and what it means.
pub const SAMPLE: &str = include_str!("../../../config/projections.toml");

/// Arguments of `config`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print every effective value and where it comes from, secrets masked
    Show(FormatArg),
    /// Print the JSON schema of the configuration file
    Schema {
        /// Compare with this file instead; exit code 1 when they differ
        #[arg(long, value_name = "FILE")]
        check: Option<PathBuf>,
    },
    /// Print the reference manual of the configuration file, in Markdown
    Reference,
    /// Print a commented sample, or write it to a new file
    Init {
        /// The file to write; it must not exist yet
        file: Option<PathBuf>,
    },
}

/// Runs one of them; the configuration is loaded only where it is needed.
///
/// # Errors
/// Faults of the configuration, a schema that differs, a file that exists already.
pub fn run(
    args: Args,
    load: impl FnOnce() -> Result<Loaded, Faults>,
    out: &Output,
) -> Result<(), Failure> {
    match args.command {
        Command::Show(format) => show(&load()?, format, out),
        Command::Schema { check: None } => out.text(&schema::json()),
        Command::Schema { check: Some(file) } => check(&file),
        Command::Reference => out.text(&schema::reference()),
        Command::Init { file: None } => out.text(SAMPLE),
        Command::Init { file: Some(file) } => init(&file, out),
    }
}

fn show(loaded: &Loaded, format: FormatArg, out: &Output) -> Result<(), Failure> {
    let settings = loaded.settings();
    if format.is_json() {
        let settings: Vec<_> = settings
            .into_iter()
            .map(|setting| {
                json!({
                    "key": setting.key,
                    "value": setting.value,
                    "source": setting.source.to_string(),
                })
            })
            .collect();
        return out.json(&json!({"file": loaded.path, "settings": settings}));
    }
    let rows = settings.into_iter().map(|setting| {
        let value = match setting.value.is_null() {
            true => "(not set)".to_owned(),
            false => schema::toml_text(&setting.value),
        };
        vec![setting.key, value, setting.source.to_string()]
    });
    out.table(&["key", "value", "source"], rows)
}

fn check(file: &std::path::Path) -> Result<(), Failure> {
    let shown = file.display();
    match disk::read_text(file, disk::CONFIG_BYTES_MAX) {
        Ok(text) if text == schema::json() => Ok(()),
        Ok(_) => Err(Failure::new(
            Exit::Failed,
            format!("{shown} differs: write it anew with `projector-host config schema > {shown}`"),
        )),
        Err(error) => Err(Failure::new(
            Exit::Failed,
            format!("cannot read {shown}: {error}"),
        )),
    }
}

fn init(file: &std::path::Path, out: &Output) -> Result<(), Failure> {
    let shown = file.display();
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(file)
        .and_then(|mut file| file.write_all(SAMPLE.as_bytes()));
    match written {
        Ok(()) => {
            out.note(&format!("wrote {shown}"));
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(Failure::new(
            Exit::Failed,
            format!("{shown} exists already and was left as it is"),
        )),
        Err(error) => Err(Failure::new(
            Exit::Failed,
            format!("cannot write {shown}: {error}"),
        )),
    }
}
