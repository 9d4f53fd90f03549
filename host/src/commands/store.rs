//! `append` and `migrate` as they stand on the command line: the configuration's databases, the form of the
//! answer, a line of progress.

use std::time::{Duration, Instant};

use super::output::{Format, FormatArg};
use super::{Context, append, migrate};
use crate::app::gate::Databases;
use crate::config::Config;
use crate::database::migrate::Target;
use crate::database::session::Database;
use crate::error::{Exit, Failure};

/// How often long work says how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Arguments of `append`.
#[derive(Debug, Clone, clap::Args)]
pub struct AppendArgs {
    #[command(flatten)]
    append: append::Args,
    #[command(flatten)]
    format: FormatArg,
}

/// Arguments of `migrate`.
#[derive(Debug, Clone, clap::Args)]
pub struct MigrateArgs {
    #[command(flatten)]
    migrate: migrate::Args,
    /// The form of the answer
    #[arg(
        short = 'o',
        long = "output",
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        global = true
    )]
    format: Format,
}

/// Appends events.
///
/// # Errors
/// As [`append::run`].
pub async fn append(args: AppendArgs, context: &Context) -> Result<(), Failure> {
    let config = &context.config.config;
    // Whoever appends needs no read model.
    let store = config.event_store_database()?;
    let mut answer = Vec::new();
    let mut said = Instant::now();
    let mut progress = |summary: &append::Summary| {
        if said.elapsed() >= PROGRESS_INTERVAL {
            said = Instant::now();
            context
                .out
                .note(&format!("{} events appended so far", summary.appended));
        }
    };
    let schema = &config.event_store.schema;
    let json = args.format.is_json();
    append::run(
        &args.append,
        &store,
        schema,
        json,
        &mut answer,
        &mut progress,
    )
    .await?;
    print(context, &answer)
}

/// Migrates, or shows what is missing.
///
/// # Errors
/// As [`migrate::run`].
pub async fn migrate(args: MigrateArgs, context: &Context) -> Result<(), Failure> {
    let places = places(&context.config.config)?;
    let mut answer = Vec::new();
    let done = migrate::run(
        &args.migrate.action,
        &places,
        args.format == Format::Json,
        &mut answer,
    )
    .await;
    // What was done before a failure is told, too.
    print(context, &answer)?;
    done
}

/// Both databases with what belongs into them.
fn places(config: &Config) -> Result<Vec<migrate::Place>, Failure> {
    let databases = Databases::of(config)?;
    let place = |(database, target): (&Database, Target)| migrate::Place {
        database: database.clone(),
        target,
    };
    Ok(databases.targets(config).map(place).into())
}

fn print(context: &Context, answer: &[u8]) -> Result<(), Failure> {
    let text =
        std::str::from_utf8(answer).map_err(|error| Failure::new(Exit::Bug, error.to_string()))?;
    context.out.text(text)
}
