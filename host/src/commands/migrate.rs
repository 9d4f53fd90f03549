//! `projector-host migrate up | status | sql`: the host's own tables in both databases.
//!
//! Promises: every database is looked at before one is changed; answers go to the given writer. Must never:
//! change an event store of another layout, for which the caller gives none.

use std::io::Write;
use std::time::Duration;

use serde_json::json;

use crate::database::migrate::{self, Part, Status, Target};
use crate::database::session::{Database, Purpose, bounded};
use crate::error::{Code, Exit, Failure};

/// Longest wait for the answer who may append.
const PRIVILEGE_TIMEOUT: Duration = Duration::from_secs(10);

/// Creates or upgrades the host's own tables in both databases.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub action: Action,
}

/// What to do with the migrations.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Action {
    /// Apply what is missing; safe from several replicas at once
    Up,
    /// Show what was applied and what is missing
    Status {
        /// Exit with 1 when something is missing
        #[arg(long)]
        check: bool,
    },
    /// Print the SQL instead of running it
    Sql {
        /// Only what belongs into this database
        #[arg(long = "for", value_name = "DATABASE")]
        part: Option<PartArg>,
    },
}

/// One of the two databases.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum PartArg {
    /// The one with the events
    EventStore,
    /// The one with rows and control tables
    ReadModel,
}

impl PartArg {
    const fn part(self) -> Part {
        match self {
            Self::EventStore => Part::EventStore,
            Self::ReadModel => Part::ReadModel,
        }
    }
}

/// A database and the tables that belong into it.
#[derive(Debug, Clone)]
pub struct Place {
    /// Where to connect.
    pub database: Database,
    /// What to migrate there.
    pub target: Target,
}

/// Runs the command. `places`: the event store, if its layout is `projector`, then the read model.
///
/// # Errors
/// 69 when a database is unavailable, 78 when one is read-only, migrated by a newer version or changed,
/// 75 when another process is migrating, 1 when a statement fails or `--check` finds something missing.
pub async fn run(
    action: &Action,
    places: &[Place],
    json: bool,
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    match action {
        Action::Up => up(places, json, out).await,
        Action::Status { check } => status(places, *check, json, out).await,
        Action::Sql { part } => {
            let wanted = part.map(PartArg::part);
            let places = places
                .iter()
                .filter(|place| wanted.is_none_or(|wanted| wanted == place.target.part));
            for place in places {
                write(out, &migrate::sql(&place.target))?;
            }
            Ok(())
        }
    }
}

async fn up(places: &[Place], json: bool, out: &mut (dyn Write + Send)) -> Result<(), Failure> {
    for place in places {
        migrate::look(&place.database, &place.target).await?;
    }
    let mut all = Vec::new();
    for place in places {
        let target = &place.target;
        let done = migrate::up(&place.database, target).await?;
        let title = title(target);
        let note = append_note(place).await?;
        if json {
            let mut one = json!({
                "part": target.part.as_str(),
                "schema": target.schema.as_str(),
                "applied": done.iter().map(|m| json!({"version": m.version, "name": m.name})).collect::<Vec<_>>(),
            });
            if let Some(note) = &note {
                one["note"] = note.as_str().into();
            }
            all.push(one);
        } else if done.is_empty() {
            write(out, &format!("{title}: up to date\n"))?;
        } else {
            for migration in done {
                let (version, name) = (migration.version, migration.name);
                write(out, &format!("{title}: applied {version:04} {name}\n"))?;
            }
        }
        if let Some(note) = note.filter(|_| !json) {
            write(out, &format!("{title}: {note}\n"))?;
        }
    }
    if json {
        write(out, &format!("{}\n", json!({ "migrations": all })))?;
    }
    Ok(())
}

/// A database whose default privileges take EXECUTE from everybody keeps appenders out, who would learn it only then.
async fn append_note(place: &Place) -> Result<Option<String>, Failure> {
    if place.target.part != Part::EventStore {
        return Ok(None);
    }
    let mut connection = place.database.connect(&Purpose::Admin).await?;
    let schema = place.target.schema.quoted();
    let asking = sqlx::query_scalar(
        "SELECT pg_catalog.has_function_privilege('public', pg_catalog.to_regprocedure($1), 'EXECUTE')",
    )
    .bind(format!("{schema}.append(text, bigint, jsonb)"))
    .fetch_one(&mut connection);
    let everybody: Option<bool> = bounded(place.database.name, PRIVILEGE_TIMEOUT, asking).await?;
    Ok((everybody == Some(false)).then(|| {
        format!(
            "not everybody may call its functions; grant those who append: \
             GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO …"
        )
    }))
}

async fn status(
    places: &[Place],
    check: bool,
    json: bool,
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    let mut pending = 0;
    let mut all = Vec::new();
    let mut foreign = Ok(());
    for place in places {
        let status = read(place).await?;
        pending += status.pending.len();
        foreign = foreign.and_then(|()| refuse_foreign(place, &status));
        if json {
            all.push(as_json(&place.target, &status));
        } else {
            write(out, &as_text(&place.target, &status))?;
        }
    }
    if json {
        write(out, &format!("{}\n", json!({ "migrations": all })))?;
    }
    foreign?;
    if check && pending > 0 {
        return Err(Failure::coded(
            Exit::Failed,
            Code(202),
            format!("{pending} to apply; run `projector-host migrate up`"),
        ));
    }
    Ok(())
}

async fn read(place: &Place) -> Result<Status, Failure> {
    let mut connection = place.database.connect(&Purpose::Admin).await?;
    Ok(migrate::status(&mut connection, &place.target).await?)
}

fn refuse_foreign(place: &Place, status: &Status) -> Result<(), Failure> {
    Ok(migrate::refuse_foreign(&place.target, status)?)
}

fn title(target: &Target) -> String {
    let database = match target.part {
        Part::EventStore => "event store",
        Part::ReadModel => "read model",
    };
    format!("{database}, schema {}", target.schema)
}

fn as_text(target: &Target, status: &Status) -> String {
    let mut text = format!("{}\n", title(target));
    for (rows, word) in [
        (&status.applied, "applied"),
        (&status.changed, "CHANGED since it was applied"),
        (&status.newer, "applied by a NEWER version"),
    ] {
        for row in rows {
            text.push_str(&format!(
                "  {:04} {:<12} {word} {}\n",
                row.version, row.name, row.applied_at
            ));
        }
    }
    for migration in &status.pending {
        text.push_str(&format!(
            "  {:04} {:<12} pending\n",
            migration.version, migration.name
        ));
    }
    text
}

fn as_json(target: &Target, status: &Status) -> serde_json::Value {
    let rows = |rows: &[migrate::Applied]| {
        rows.iter()
            .map(|row| json!({"version": row.version, "name": row.name, "checksum": row.checksum, "applied_at": row.applied_at}))
            .collect::<Vec<_>>()
    };
    json!({
        "part": target.part.as_str(),
        "schema": target.schema.as_str(),
        "applied": rows(&status.applied),
        "pending": status.pending.iter().map(|m| json!({"version": m.version, "name": m.name})).collect::<Vec<_>>(),
        "newer": rows(&status.newer),
        "changed": rows(&status.changed),
    })
}

fn write(out: &mut (dyn Write + Send), text: &str) -> Result<(), Failure> {
    super::append::put(out, text)
}
