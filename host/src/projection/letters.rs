//! How many dead letters there are, for metrics and probes; and log lines that were held back.

use std::time::{Duration, Instant};

use sqlx::postgres::PgConnection;

use crate::database::error::Error;
use crate::read_model::dead_letter;

use super::progress::Letters;
use super::roster::Known;
use super::supervisor::Shared;

/// How often letters are counted when nobody has written or resolved one here: commands do it elsewhere.
const COUNT_INTERVAL: Duration = Duration::from_secs(10);

/// When they were counted last.
#[derive(Debug, Default)]
pub(super) struct Counted(Option<Instant>);

/// Counts them, when they may have changed, and tells what was held back.
pub(super) async fn count(
    connection: &mut PgConnection,
    shared: &Shared,
    projections: &[Known],
    counted: &mut Counted,
) -> Result<(), Error> {
    let mut changed = counted
        .0
        .is_none_or(|last| last.elapsed() >= COUNT_INTERVAL);
    for known in projections {
        known.progress.tell_repeats(&known.name, false);
        if let Some(offer) = &known.offer {
            offer.plugin.guest.tell_held_lines();
        }
        changed |= known.progress.letters_to_count();
    }
    if !changed {
        return Ok(());
    }
    let counts = dead_letter::Letters::new(shared.control.clone())
        .counts(connection)
        .await?;
    for known in projections {
        let name = &known.name;
        // Of every build; there is one today.
        let own = || counts.iter().filter(|count| count.projection == *name);
        let letters = Letters {
            open: own().map(|count| count.open).sum(),
            parked_streams: own().map(|count| count.parked_streams).sum(),
        };
        let oldest = own().map(|count| count.oldest_seconds).max().unwrap_or(0);
        known.progress.set_letters(letters);
        let metrics = shared.metrics.projection(name);
        metrics.waits(letters.open, oldest, letters.parked_streams);
    }
    counted.0 = Some(Instant::now());
    Ok(())
}
