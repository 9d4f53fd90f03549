//! `locks run`: a command under a lock, as a wrapper for cron and for deployments.
//!
//! Promises: the command runs only while the lock is held; when the lock is lost it is told (SIGTERM, after
//! `--grace` SIGKILL); signals are passed on; no process and no lock stays behind. Exit code: the command's own, or 75
//! when the lock is held elsewhere or was lost.
//!
//! The process that people see does not hold the lock: it starts a keeper, which does, so that whoever kills it does
//! not free the lock before the command has ended. The keeper starts [`supervise`](super::supervise), which ends the
//! command when the keeper is killed.

mod child;
mod held;
mod keeper;

use std::ffi::OsString;
use std::process::ExitStatus;
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::{Pid, Signal, getppid};

use super::Target;
use crate::advisory_lock::cron::{Decision, Runs, SCHEMA, When};
use crate::advisory_lock::key::Key;
use crate::advisory_lock::registry::label;
use crate::advisory_lock::session::{self, Leases};
use crate::advisory_lock::slots::Slots;
use crate::advisory_lock::{Error, session::SessionLock};
use crate::commands::output::Output;
use crate::database::identifier::Identifier;
use crate::error::{Exit, Failure};
use child::Running;
use held::Held;

/// Signals that are passed on to the command.
pub(super) const FORWARDED: [Signal; 6] = [
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
];

/// A check of the lock that takes longer means that it is lost.
const LOCAL_LEASE: Duration = Duration::from_secs(5);

/// How much later than a command that was told to end the server frees the lock.
const LEASE_MARGIN: Duration = Duration::from_secs(5);

/// Arguments of `locks run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  projector-host locks run nightly-invoices -- ./invoices.sh
  projector-host locks run --once-per 1h report -- ./report.sh      on every host, by cron
  projector-host locks run --slots 3 --wait 10m import -- ./import.sh
  DB=postgres://… projector-host locks run --url-env DB deploy -- make deploy")]
pub struct Args {
    /// Name of the lock
    name: String,
    /// Namespace of the name
    #[arg(long, value_name = "NS", default_value = "")]
    namespace: String,
    /// Wait this long for the lock, in line; not at all unless given
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "0s")]
    wait: Duration,
    /// Let up to N run at once over all hosts, instead of one
    #[arg(long, value_name = "N", conflicts_with_all = ["once_per", "scheduled_at"])]
    slots: Option<u32>,
    /// Do nothing (and exit 0) if a run began on any host within this time
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, conflicts_with = "scheduled_at")]
    once_per: Option<Duration>,
    /// Do nothing (and exit 0) if this point in time was run for on any host; RFC 3339
    #[arg(long, value_name = "TIME")]
    scheduled_at: Option<Timestamp>,
    /// Schema of the table that remembers runs
    #[arg(long, value_name = "NAME", default_value = SCHEMA)]
    schema: String,
    /// Time between SIGTERM and SIGKILL when the lock is lost
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "10s")]
    grace: Duration,
    /// Environment variable with the database URL, instead of the configuration
    #[arg(long, value_name = "NAME")]
    pub(super) url_env: Option<String>,
    /// Pid of the process that people see
    #[arg(long, hide = true)]
    keeper_of: Option<i32>,
    /// The command and its arguments
    #[arg(last = true, required = true, num_args = 1.., value_name = "CMD")]
    command: Vec<OsString>,
}

/// Takes the lock, runs the command, gives the lock back.
///
/// # Errors
/// [`Exit::Child`] with the code of the command unless it is 0; [`Exit::TryAgain`] when the lock is held
/// elsewhere or was lost.
pub async fn run(args: Args, target: &Target, out: &Output) -> Result<(), Failure> {
    let Some(parent) = args.keeper_of else {
        return keeper::run().await;
    };
    let parent = keeper::follow(parent)?;
    let mut signals = child::Signals::listen()?;
    // A signal before the command runs ends the wait, and the connection with it.
    let prepared = tokio::select! {
        prepared = prepare(&args, target) => {
            prepared.map_err(|error| named(error, &args).to_failure())?
        }
        signal = signals.next() => return Err(by_signal(signal)),
    };
    let (held, runs) = match prepared {
        Prepared::Go(held, runs) => (held, runs),
        Prepared::Done { by, started_at } => {
            out.note(&format!("already run by {by} at {started_at}"));
            return Ok(());
        }
    };
    let running = Running::start(&args.command, args.grace)?;
    let outcome = watch(running, held, &mut signals, parent, &args, out).await?;
    finish(outcome, runs).await
}

/// People know the name and not the number.
fn named(error: Error, args: &Args) -> Error {
    match error {
        Error::Held {
            key,
            holder,
            waited,
        } if args.slots.is_none() => Error::Held {
            key: format!("`{}` ({key})", label(&args.namespace, &args.name)),
            holder,
            waited,
        },
        other => other,
    }
}

enum Prepared {
    Go(Held, Option<(Runs, i64)>),
    Done { by: String, started_at: String },
}

struct Outcome {
    code: u8,
    held: Result<Held, Error>,
}

async fn prepare(args: &Args, target: &Target) -> Result<Prepared, Error> {
    if args.name.is_empty() {
        return Err(Error::Usage("a lock needs a name".to_owned()));
    }
    let leases = Leases {
        local_lease: LOCAL_LEASE,
        server_lease: LOCAL_LEASE + args.grace + LEASE_MARGIN,
    };
    let database = &target.database;
    if let Some(limit) = args.slots {
        let slots = Slots::new(&args.namespace, &args.name, limit)?;
        let slot = slots.acquire(database, args.wait, leases).await?;
        return Ok(Prepared::Go(Held::Slot(slot), None));
    }
    let when = match (args.once_per, args.scheduled_at) {
        (Some(period), _) => Some(When::OncePer(period)),
        (None, Some(at)) => Some(When::At(at)),
        (None, None) => None,
    };
    let runs = match when {
        None => None,
        Some(when) => {
            let schema = Identifier::new(&args.schema)
                .map_err(|error| Error::Usage(format!("--schema: {error}")))?;
            let runs = Runs::new(schema);
            runs.prepare(database).await?;
            Some((runs, when))
        }
    };
    let key = Key::derive(&args.namespace, &args.name);
    let mut lock = session::acquire(database, key, args.wait, leases).await?;
    let Some((runs, when)) = runs else {
        return Ok(Prepared::Go(Held::Lock(lock), None));
    };
    let job = label(&args.namespace, &args.name);
    match begin(&runs, &mut lock, &job, when).await? {
        Decision::Run(id) => Ok(Prepared::Go(Held::Lock(lock), Some((runs, id)))),
        Decision::Done { by, started_at } => {
            lock.release().await?;
            Ok(Prepared::Done { by, started_at })
        }
    }
}

async fn begin(
    runs: &Runs,
    lock: &mut SessionLock,
    job: &str,
    when: When,
) -> Result<Decision, Error> {
    runs.begin(lock, job, when, &super::node()).await
}

/// Waits for the command while the lock is proven again and again.
async fn watch(
    mut running: Running,
    held: Held,
    signals: &mut child::Signals,
    parent: Pid,
    args: &Args,
    out: &Output,
) -> Result<Outcome, Failure> {
    let mut keeping = held.keep();
    loop {
        tokio::select! {
            status = running.wait() => {
                running.end_group(args.grace).await;
                let held = keeping.stop().await;
                return Ok(Outcome { code: code_of(status?), held });
            }
            lost = keeping.lost() => {
                out.note(&format!("{lost}; ending the command"));
                let status = running.end(args.grace).await?;
                return Ok(Outcome { code: code_of(status), held: Err(lost) });
            }
            signal = signals.next() => {
                if getppid() == Some(parent) {
                    running.tell(signal);
                    continue;
                }
                // It was killed. The lock stays until the command has ended.
                let status = running.end(args.grace).await?;
                let held = keeping.stop().await;
                return Ok(Outcome { code: code_of(status), held });
            }
        }
    }
}

async fn finish(outcome: Outcome, runs: Option<(Runs, i64)>) -> Result<(), Failure> {
    let mut held = outcome.held.map_err(|error| error.to_failure())?;
    if let Some((runs, id)) = runs {
        let noted = runs.finish(held.lock(), id, i32::from(outcome.code)).await;
        if let Err(error) = noted {
            tracing::warn!(%error, "could not note how the run ended; it counts all the same");
        }
    }
    // The command has ended, so a lock that cannot be given back in order is only closed.
    if let Err(error) = held.release().await {
        tracing::warn!(%error, "the lock was not given back in order");
        if matches!(error, Error::NotHeld { .. }) {
            return Err(error.to_failure());
        }
    }
    match outcome.code {
        0 => Ok(()),
        code => Err(Failure::new(Exit::Child(code), "")),
    }
}

/// An exit code, or 128 and the signal, as shells have it.
pub(super) fn code_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code & 0xFF).unwrap_or(1)
}

fn by_signal(signal: Signal) -> Failure {
    let code = u8::try_from(128 + signal.as_raw()).unwrap_or(1);
    Failure::new(Exit::Child(code), "")
}
