//! `locks list`: who holds and who waits.

use std::time::Duration;

use serde::Serialize;

use super::Target;
use crate::advisory_lock::Error;
use crate::advisory_lock::inspect::{self, Lock};
use crate::commands::output::{FormatArg, Output};
use crate::database::session::{Purpose, bounded};
use crate::error::Failure;

/// Bound on one look.
const LIMIT: Duration = Duration::from_secs(10);

/// Pause between two looks of `--watch`.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// Arguments of `locks list`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Look again every two seconds
    #[arg(long)]
    watch: bool,
    /// Environment variable with the database URL, instead of the configuration
    #[arg(long, value_name = "NAME")]
    pub(super) url_env: Option<String>,
    #[command(flatten)]
    output: FormatArg,
}

/// What `-o json` prints; with `--watch` one such line for each look.
#[derive(Debug, Serialize)]
struct Answer {
    locks: Vec<Lock>,
    /// How many sessions this role may not see in full.
    hidden: usize,
}

/// Prints the locks.
///
/// # Errors
/// When the database fails, or standard output cannot be written.
pub async fn run(args: &Args, target: &Target, out: &Output) -> Result<(), Failure> {
    let failed = |error: Error| error.to_failure();
    let name = target.database.name;
    let connecting = target.database.connect(&Purpose::Admin).await;
    let mut connection = connecting.map_err(|error| failed(error.into()))?;
    loop {
        let look = inspect::locks(&mut connection, &target.registry);
        let locks = match tokio::time::timeout(LIMIT, look).await {
            Ok(locks) => locks.map_err(failed)?,
            Err(_) => {
                let silent = bounded::<(), crate::database::error::Error>(
                    name,
                    Duration::ZERO,
                    std::future::pending(),
                );
                return Err(silent
                    .await
                    .map_err(|error| failed(error.into()))
                    .err()
                    .unwrap_or_else(|| {
                        Failure::new(crate::error::Exit::Unavailable, "no answer")
                    }));
            }
        };
        let hidden = locks.iter().filter(|lock| lock.hidden).count();
        if args.output.is_json() {
            out.json(&Answer { locks, hidden })?;
        } else {
            if args.watch && out.is_terminal() {
                out.text("\u{1b}[2J\u{1b}[H")?;
            }
            people(&locks, hidden, out)?;
        }
        if !args.watch {
            return Ok(());
        }
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
}

fn people(locks: &[Lock], hidden: usize, out: &Output) -> Result<(), Failure> {
    if locks.is_empty() {
        out.note("no advisory lock is held or waited for in this database");
        return Ok(());
    }
    let header = [
        "key",
        "name",
        "mode",
        "what",
        "for",
        "pid",
        "application",
        "user",
        "client",
        "state",
        "note",
        "last query",
    ];
    out.table(&header, locks.iter().map(row))?;
    if hidden > 0 {
        out.note(&format!(
            "{hidden} of these sessions belong to other roles and are hidden in part: GRANT pg_monitor TO the role, or \
             connect as one that may see them"
        ));
    }
    Ok(())
}

fn row(lock: &Lock) -> Vec<String> {
    let text = |value: &Option<String>| {
        let absent = if lock.hidden { "(hidden)" } else { "" };
        value.clone().unwrap_or_else(|| absent.to_owned())
    };
    let state = match (&lock.state, lock.state_seconds) {
        (Some(state), Some(seconds)) => format!("{state} {}", ago(seconds)),
        _ => text(&lock.state),
    };
    let note = if lock.idle_and_holding {
        "idle and holding: a leak?".to_owned()
    } else if lock.blocked_by.is_empty() {
        String::new()
    } else {
        let pids: Vec<String> = lock.blocked_by.iter().map(ToString::to_string).collect();
        format!("waits for {}", pids.join(", "))
    };
    // A holder's session may be older than its lock; nobody records when a lock was taken.
    let (what, seconds) = match lock.granted {
        true => ("holds", lock.session_seconds),
        false => ("waits", lock.waiting_seconds),
    };
    let seconds = seconds.map_or_else(|| text(&None), ago);
    vec![
        lock.key.clone(),
        lock.name.clone().unwrap_or_default(),
        lock.mode.to_owned(),
        what.to_owned(),
        if lock.granted && !seconds.starts_with('(') {
            format!("at most {seconds}")
        } else {
            seconds
        },
        lock.pid.map(|pid| pid.to_string()).unwrap_or_default(),
        lock.application_name.clone().unwrap_or_default(),
        text(&lock.user),
        lock.client
            .clone()
            .unwrap_or_else(|| if lock.hidden { "(hidden)" } else { "local" }.to_owned()),
        state,
        note,
        text(&lock.query),
    ]
}

/// `3s`, `14m 3s`.
fn ago(seconds: f64) -> String {
    let whole = Duration::from_secs_f64(seconds.max(0.0).floor());
    humantime::format_duration(whole).to_string()
}
