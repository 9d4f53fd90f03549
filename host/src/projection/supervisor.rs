//! All projections of one term: starts them, watches them, tells people how they are.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::AssertSqlSafe;
use sqlx::Row as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::database::connections::Connections;
use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::database::session::bounded;
use crate::database::template::render;
use crate::event_store::event::Position;
use crate::event_store::{Feed, Mark, StoreIdentity};
use crate::guest::engine::Engine;
use crate::leadership::{Leadership, Progress as Watchdog};
use crate::read_model::checkpoint::{Checkpoints, Fence, GenerationKey};
use crate::telemetry::metrics::Metrics;

use super::letters;
use super::member::Member;
use super::progress::State;
use super::roster::{Known, Roster};
use super::runner::{CONTROL_TIMEOUT, Stopped};
use super::verdict::Stand;

/// How often commands are looked for and states are written.
const CONTROL_INTERVAL: Duration = Duration::from_secs(1);

/// What all projections share.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Sessions for batches and control statements.
    pub write: Connections,
    /// Sessions for look-ups.
    pub lookup: Connections,
    /// The control schema.
    pub control: Identifier,
    /// The schema of the views.
    pub readers: Identifier,
    /// For everybody to count.
    pub metrics: Metrics,
    /// Runs the plugins.
    pub engine: Engine,
}

/// Makes what is known of a projection that is recorded, but of which this replica has no file.
pub type Unknown = Arc<dyn Fn(&str) -> Known + Send + Sync>;

/// Runs all projections while this replica leads.
pub struct Supervisor {
    /// What all of them share.
    pub shared: Shared,
    /// The projections; they may change while they run.
    pub roster: Roster,
    /// How those run of which only the record is known.
    pub unknown: Unknown,
    /// Set when every projection has a leader of its own: other rows are their leaders' business.
    pub only: Option<String>,
    /// Where events come from.
    pub feed: Feed,
    /// Which store that is.
    pub store: StoreIdentity,
    /// The term.
    pub leadership: Leadership,
    /// Told that the loops are alive.
    pub watchdog: Watchdog,
}

impl Supervisor {
    /// Runs until cancelled or fenced; every batch has ended then.
    pub async fn run(self, cancelled: CancellationToken) -> Stopped {
        let stop = cancelled.child_token();
        let fence = Fence {
            group: self.leadership.group.clone(),
            term: self.leadership.term.0,
            term_id: self.leadership.term_id,
        };
        let checkpoints = Checkpoints::new(self.shared.control.clone(), fence);
        let mut revisions: HashMap<String, watch::Sender<i64>> = HashMap::new();
        let mut running = JoinSet::new();
        let begun = Instant::now();
        let mut changes = self.roster.changes();
        let mut tick = tokio::time::interval(CONTROL_INTERVAL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut written = Written::default();
        let mut outcome = Stopped::Cancelled;
        loop {
            // Also those that came in the meantime.
            changes.mark_unchanged();
            for known in self.all() {
                if revisions.contains_key(&known.name) {
                    continue;
                }
                let (sender, revision) = watch::channel(-1);
                revisions.insert(known.name.clone(), sender);
                let member = Member {
                    name: known.name.clone(),
                    since: begun,
                    roster: self.roster.clone(),
                    shared: self.shared.clone(),
                    feed: self.feed.for_one(),
                    checkpoints: checkpoints.clone(),
                    lease: self.leadership.lease.clone(),
                    revision,
                };
                running.spawn(member.run(stop.clone()));
            }
            tokio::select! {
                biased;
                () = cancelled.cancelled() => break,
                Ok(()) = changes.changed() => {}
                ended = running.join_next(), if !running.is_empty() => match ended {
                    Some(Ok(Stopped::Cancelled)) | None => {}
                    Some(Ok(ended)) => {
                        outcome = ended;
                        break;
                    }
                    // A projection's own task must never end silently: give the term to somebody else.
                    Some(Err(panic)) => {
                        tracing::error!(error = %panic, "a projection's task died; this is a bug in the host");
                        outcome = Stopped::Died;
                        break;
                    }
                },
                _ = tick.tick() => {
                    if self.all().iter().all(|known| known.progress.is_alive()) {
                        self.watchdog.tick();
                    }
                    if let Err(error) = self.control(&checkpoints, &revisions, &mut written).await {
                        tracing::warn!(%error, "cannot read what commands changed; trying again");
                    }
                }
            }
        }
        stop.cancel();
        while running.join_next().await.is_some() {}
        // The last word of this term: states as they are now. Nobody waits for it if the database is gone.
        if outcome == Stopped::Cancelled {
            let _ = self.control(&checkpoints, &revisions, &mut written).await;
        }
        outcome
    }

    /// What this leader leads.
    fn all(&self) -> Vec<Known> {
        let mut all = self.roster.all().to_vec();
        all.retain(|known| self.only.as_ref().is_none_or(|only| *only == known.name));
        all
    }

    async fn control(
        &self,
        checkpoints: &Checkpoints,
        revisions: &HashMap<String, watch::Sender<i64>>,
        written: &mut Written,
    ) -> Result<(), DatabaseError> {
        let mark = self.feed.mark().borrow().clone();
        let all = self.all();
        for known in all.iter() {
            let stand = Stand::of(known, known.progress.state(&mark));
            let metrics = self.shared.metrics.projection(&known.name);
            metrics.state(&stand, mark.head);
        }
        self.shared
            .metrics
            .store(mark.head, mark.settled_upto, mark.is_listening());
        // Asked before the rows, which can only be ahead of this.
        let committed: HashMap<&str, Position> = all
            .iter()
            .map(|known| (known.name.as_str(), known.progress.position()))
            .collect();
        let limit = CONTROL_TIMEOUT;
        let name = self.shared.write.database();
        let mut loan = bounded(name, limit, self.shared.write.lend()).await?;
        let statement = render(
            include_str!("../read_model/sql/control_rows.sql"),
            &[("control", &self.shared.control)],
        );
        let rows = bounded(
            name,
            limit,
            sqlx::query(AssertSqlSafe(statement)).fetch_all(&mut *loan),
        )
        .await?;
        for row in &rows {
            let (projection, generation, revision): (String, i32, i64) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let written_state: String = row.try_get(3)?;
            if self.only.as_ref().is_some_and(|only| *only != projection) {
                continue;
            }
            if let Some(sender) = revisions.get(&projection) {
                sender.send_if_modified(|known| std::mem::replace(known, revision) != revision);
            }
            let key = GenerationKey {
                projection,
                generation,
            };
            let Some(known) = all.iter().find(|known| known.name == key.projection) else {
                // Its file is not here. It runs all the same if its plugin was kept.
                let unknown = || (self.unknown)(&key.projection);
                self.roster.is_recorded(&key.projection, unknown);
                continue;
            };
            let state = known.progress.state(&mark);
            let runs = matches!(state, State::Live | State::CatchingUp | State::Held);
            let stands = Position(row.try_get(4)?);
            let ahead = committed.get(known.name.as_str());
            let ahead = ahead.filter(|committed| runs && stands < **committed);
            if let Some(committed) = written.stays_behind(&known.name, stands, ahead) {
                tracing::warn!(
                    projection = known.name,
                    position = stands.0,
                    committed = committed.0,
                    "the checkpoint went back, as after a crash of the server; going on from there"
                );
                let again = checkpoints.look_again(&mut loan, &key, stands);
                bounded(name, limit, again).await?;
            }
            // A new row starts by itself; pause and stop write their own state with their own fields.
            let follows = !matches!(state, State::Starting | State::Paused | State::Stopped);
            if follows && written_state != state.as_str() {
                bounded(
                    name,
                    limit,
                    checkpoints.state(&mut loan, &key, state.as_str()),
                )
                .await?;
            }
        }
        if written.mark.as_ref() != Some(&mark) {
            let before = written.mark.as_ref();
            let saving = save_mark(&mut loan, checkpoints, &self.store, &mark, before);
            bounded(name, limit, saving).await?;
            written.mark = Some(mark);
        }
        bounded(
            name,
            limit,
            letters::count(&mut loan, &self.shared, &all, &mut written.letters),
        )
        .await?;
        loan.give_back();
        Ok(())
    }
}

/// What was written last, so that an idle host writes nothing.
#[derive(Debug, Default)]
struct Written {
    mark: Option<Mark>,
    /// Checkpoints that stood behind what was committed.
    behind: HashMap<String, Position>,
    letters: letters::Counted,
}

impl Written {
    /// What was committed ahead of where the checkpoint stands, when that was so the last time too: a run that begins anew
    /// on purpose has said so by then. Asked again, it counts from the beginning.
    fn stays_behind(
        &mut self,
        projection: &str,
        stands: Position,
        ahead: Option<&Position>,
    ) -> Option<Position> {
        let before = self.behind.remove(projection);
        let ahead = *ahead?;
        if before == Some(stands) {
            return Some(ahead);
        }
        self.behind.insert(projection.to_owned(), stands);
        None
    }
}

async fn save_mark(
    connection: &mut sqlx::postgres::PgConnection,
    checkpoints: &Checkpoints,
    store: &StoreIdentity,
    mark: &Mark,
    before: Option<&Mark>,
) -> Result<(), DatabaseError> {
    use sqlx::Connection as _;
    let mut transaction = connection.begin().await?;
    if checkpoints.hold_term(&mut transaction).await? {
        let statement = render(
            include_str!("../read_model/sql/save_source.sql"),
            &[("control", checkpoints.control())],
        );
        let held = mark.held.as_ref();
        // How far the store is settled is only a lower bound; what is waited for has to stay there until it is over.
        let was_held = before.is_none_or(|before| before.held.is_some());
        let may_be_lost = held.is_none() && !was_held;
        sqlx::query(AssertSqlSafe(statement))
            .bind(&store.source)
            .bind(&store.system_identifier)
            .bind(&store.timeline)
            .bind(mark.settled_upto.0)
            .bind(mark.head.0)
            .bind(held.map(|held| held.position.0))
            .bind(held.map(|held| crate::database::micros::Micros(held.since_micros())))
            .bind(held.map(crate::event_store::Held::writers_json))
            .bind(may_be_lost)
            .bind(mark.anchor.as_ref().map(|anchor| anchor.position.0))
            .bind(mark.anchor.as_ref().map(|anchor| anchor.id.as_str()))
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(())
}
