//! `projector-host append FILE|-`: events from lines of JSON into the event store, a transaction a batch.
//!
//! Promises: constant memory; the order of the lines is the order of the positions; nothing of a batch with a
//! bad line is written, what was written before stays, and the message says up to which line. Must never:
//! retry a version conflict, or change the text of a payload.

mod batch;
mod error;
mod line;
mod lines;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};
use tokio::io::{AsyncBufRead, BufReader};

use crate::config::disk;
use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::database::migrate::{self, Target};
use crate::database::session::{Database, Purpose, bounded};
use crate::database::template::render;
use crate::error::{Exit, Failure};
use batch::{Batch, Batches};
use error::Place;

pub use batch::BATCH_BYTES_MAX;
pub use lines::LINE_BYTES_MAX;

/// Longest wait for the answer to one batch; the server's own limit for the statement is shorter.
const BATCH_TIMEOUT: Duration = Duration::from_secs(90);

/// Buffer before the lines, in bytes.
const READ_BUFFER_BYTES: usize = 256 * 1024;

const APPEND_BATCH_SQL: &str = include_str!("append/append_batch.sql");

/// Appends events, one JSON object a line.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The file to read; `-` is standard input
    #[arg(value_name = "FILE.ndjson", default_value = "-")]
    pub file: PathBuf,
    /// Events a transaction
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=5000), value_name = "EVENTS")]
    pub batch: u32,
}

/// What came of it; the shape of `-o json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Summary {
    /// Events that are new in the store.
    pub appended: u64,
    /// Lines whose event id was in its stream already.
    pub duplicates: u64,
    /// Position of the first new event.
    pub first_position: Option<i64>,
    /// Position of the last new event.
    pub last_position: Option<i64>,
}

/// Runs the command; `progress` is called after each batch.
///
/// # Errors
/// 1 for a bad line, a version conflict or a file that cannot be read; 69 when the event store is
/// unavailable; 75 when another transaction holds a stream for too long; 78 when the store is not migrated.
pub async fn run(
    args: &Args,
    database: &Database,
    schema: &Identifier,
    json: bool,
    out: &mut (dyn Write + Send),
    progress: &mut (dyn FnMut(&Summary) + Send),
) -> Result<(), Failure> {
    let summary = if args.file.as_os_str() == "-" {
        let input = BufReader::with_capacity(READ_BUFFER_BYTES, tokio::io::stdin());
        append(input, "<stdin>", args.batch, database, schema, progress).await?
    } else {
        let name = args.file.display().to_string();
        let file = disk::open(&args.file).map_err(|error| {
            Failure::new(Exit::Failed, format!("cannot open `{name}`: {error}"))
        })?;
        let file = tokio::fs::File::from_std(file);
        let input = BufReader::with_capacity(READ_BUFFER_BYTES, file);
        append(input, &name, args.batch, database, schema, progress).await?
    };
    let text = if json {
        serde_json::to_string(&summary)
            .map_err(|error| Failure::new(Exit::Bug, format!("cannot form JSON: {error}")))?
    } else {
        summary.to_text()
    };
    put(out, &format!("{text}\n"))
}

/// Appends the lines of any source; `name` stands for it in messages.
///
/// # Errors
/// As for [`run`].
pub async fn append(
    input: impl AsyncBufRead + Unpin,
    name: &str,
    batch_events_max: u32,
    database: &Database,
    schema: &Identifier,
    progress: &mut (dyn FnMut(&Summary) + Send),
) -> Result<Summary, Failure> {
    let mut connection = database.connect(&Purpose::Admin).await?;
    match migrate::check(&mut connection, &Target::event_store(schema.clone())).await {
        // A role that only appends need not see which migrations were applied.
        Err(error) if !error.is_denied() => return Err(error.into()),
        _ => {}
    }
    let sql = render(APPEND_BATCH_SQL, &[("event_store", schema)]);
    let mut batches = Batches::new(input, batch_events_max as usize);
    let mut summary = Summary::default();
    let mut place = Place::new(name);
    let mut next = batches.next().await;
    while let Some(batch) = next.map_err(|fault| place.fault(&fault, &summary))? {
        // The next lines are read and checked while the server works.
        let (sent, following) = tokio::join!(
            send(&mut connection, database.name, &sql, &batch),
            batches.next()
        );
        let sent = sent.map_err(|error| place.refused(&batch, error, schema, &summary))?;
        summary.add(&sent);
        place.written_upto = batch.last_line();
        progress(&summary);
        next = following;
    }
    Ok(summary)
}

async fn send(
    connection: &mut PgConnection,
    database: &'static str,
    sql: &str,
    batch: &Batch,
) -> Result<Summary, DatabaseError> {
    let asking = sqlx::query(AssertSqlSafe(sql.to_owned()))
        .bind(batch.as_json())
        .fetch_one(connection);
    let row = bounded(database, BATCH_TIMEOUT, asking).await?;
    let count = |name| Ok::<u64, sqlx::Error>(row.try_get::<i64, _>(name)?.unsigned_abs());
    Ok(Summary {
        appended: count("appended")?,
        duplicates: count("duplicates")?,
        first_position: row.try_get("first_position")?,
        last_position: row.try_get("last_position")?,
    })
}

impl Summary {
    fn add(&mut self, other: &Self) {
        self.appended += other.appended;
        self.duplicates += other.duplicates;
        self.first_position = self.first_position.or(other.first_position);
        self.last_position = other.last_position.or(self.last_position);
    }

    fn to_text(self) -> String {
        let plural = |n: u64| if n == 1 { "event" } else { "events" };
        let mut text = format!("appended {} {}", self.appended, plural(self.appended));
        if let (Some(first), Some(last)) = (self.first_position, self.last_position) {
            text.push_str(&format!(", positions {first} to {last}"));
        }
        if self.duplicates > 0 {
            let were = if self.duplicates == 1 { "was" } else { "were" };
            text.push_str(&format!("; {} {were} there already", self.duplicates));
        }
        text
    }
}

/// Writes an answer; a closed pipe ends the command as done.
pub(super) fn put(out: &mut (dyn Write + Send), text: &str) -> Result<(), Failure> {
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::new(Exit::Done, ""),
            _ => Failure::new(Exit::Failed, format!("cannot write the answer: {error}")),
        })
}
