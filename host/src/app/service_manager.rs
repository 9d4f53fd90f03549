//! What systemd is told: ready, status, alive, stopping. Nothing happens when no service manager listens.
//!
//! `WATCHDOG=1` is sent only while the runtime runs its tasks, so a hung process is restarted.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio_util::sync::CancellationToken;

use super::standing::{Gate, Standing};

/// How often the status line is brought up to date.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// Tells the service manager how this replica is, until shutdown.
pub(super) async fn run(standing: Standing, shutdown: CancellationToken) {
    let watchdog = sd_notify::watchdog_enabled();
    let every = watchdog.map_or(STATUS_INTERVAL, |limit| (limit / 2).min(STATUS_INTERVAL));
    let mut tick = tokio::time::interval(every);
    let (mut ready, mut told) = (false, String::new());
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            _ = tick.tick() => {}
        }
        // Standbys are ready, too: ready means that this replica takes part.
        if !ready && standing.gate() == Gate::Open && standing.role().is_some() {
            ready = true;
            tell(&[NotifyState::Ready]);
        }
        let status = match (standing.gate(), standing.role()) {
            (Gate::Closed(why), _) => format!("waiting: {why}"),
            (Gate::Open, role) => {
                role.map_or("starting", |role| role.as_str()).to_owned() + &led(&standing)
            }
        };
        if status != told {
            tell(&[NotifyState::Status(&status)]);
            told = status;
        }
        if watchdog.is_some() && standing.is_alive() {
            tell(&[NotifyState::Watchdog]);
        }
    }
    tell(&[NotifyState::Stopping]);
}

/// Which projections are led, when each has a leader of its own.
fn led(standing: &Standing) -> String {
    let seats = standing.seats();
    let led = seats
        .iter()
        .filter(|seat| seat.role().leadership().is_some());
    let names: Vec<&str> = led.filter_map(|seat| seat.projection.as_deref()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" {}", names.join(", ")),
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "the service manager was not told");
    }
}
