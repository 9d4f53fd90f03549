//! One session of the reading service: its statements, and the proof that runs on it.
//!
//! A proof lives and dies with its session: after a reconnect the holders that were seen before mean nothing.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row as _, SqlSafeStr as _, SqlStr};
use tokio::sync::watch;

use crate::database::micros::Micros;
use crate::database::session::{self, Database, Purpose, attended};

use crate::event_store::anchor::{self, Anchor, Sight};
use crate::event_store::error::Error;
use crate::event_store::event::Position;
use crate::event_store::feed::CAREFUL_READS;
use crate::event_store::gap::{Holder, Proof};
use crate::event_store::layout::Layout;
use crate::event_store::mark::Writer;
use crate::event_store::preflight::{self, Sequence, StoreIdentity};
use crate::event_store::rows::{self, Found};
use crate::event_store::{GapProof, Options};

use super::edits::Edits;

/// Longest wait for one statement; the server's own limit is shorter.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(35);

/// An open session to a store that was checked.
pub(super) struct Session {
    connection: PgConnection,
    database: Database,
    layout: Layout,
    statements: Statements,
    gap_proof: GapProof,
    table: Oid,
    /// Everything up to here is settled, though perhaps not read yet.
    floor: Position,
    running: Option<Running>,
    /// Reads that weigh payloads before they ask for them, from here on.
    careful: u32,
    anchor: Option<Anchor>,
    edits: Edits,
}

/// What is asked again and again, as text.
struct Statements {
    head: SqlStr,
    /// Rows as they are, unless one is large.
    small: SqlStr,
    /// Rows that are weighed.
    sized: SqlStr,
    positions: SqlStr,
    edits: SqlStr,
}

/// A proof that is not complete yet.
pub(super) struct Running {
    proof: Proof,
    /// When it was begun, by both clocks.
    pub(super) since: SystemTime,
    pub(super) begun: Instant,
    /// Whether it covers everything up to the head, so that nothing needs to be read before.
    pub(super) whole: bool,
    /// Who is waited for, as last seen.
    pub(super) waiting_for: Vec<Writer>,
}

impl Session {
    /// Connects, checks the store, and makes sure that it is the known one, if there is one.
    pub(super) async fn open(
        options: &Options,
        layout: &Layout,
        settled_upto: Position,
        anchor: Option<&Anchor>,
        identity: &watch::Sender<Option<StoreIdentity>>,
    ) -> Result<Self, Error> {
        let mut connection = options.database.connect(&Purpose::Read).await?;
        let database = options.database.name;
        let known = identity.borrow().clone();
        let checking = preflight::check_known(&mut connection, layout, known.as_ref());
        let checked = within(database, checking).await?;
        within(database, async {
            Ok(session::apply_by_position(&mut connection).await?)
        })
        .await?;
        // What was read must still stand there, and something must have stood there if anything was read.
        let known_at = anchor.map_or(settled_upto, |anchor| anchor.position);
        let looking = anchor::look(&mut connection, layout, known_at, settled_upto);
        let sight = within(database, looking).await?;
        match anchor {
            Some(anchor) => anchor.stands(sight.found.as_deref())?,
            None if settled_upto > sight.head => {
                return Err(Error::OtherStore(format!(
                    "its last event stands at position {}, but it was read up to {settled_upto}",
                    sight.head
                )));
            }
            None => {}
        }
        if known.is_none() {
            identity.send_replace(Some(checked.identity));
        }
        Ok(Self {
            connection,
            database: options.database.clone(),
            layout: layout.clone(),
            statements: Statements::new(layout, &checked.sequence),
            gap_proof: options.gap_proof,
            table: checked.table,
            floor: settled_upto,
            running: None,
            careful: 0,
            anchor: sight.last,
            edits: Edits::new(checked.table, checked.sequence),
        })
    }

    /// The last event up to the mark with which the session began.
    pub(super) fn anchor(&self) -> Option<&Anchor> {
        self.anchor.as_ref()
    }

    /// Looks for what must not happen below the mark, if it was not looked for lately. Returns the positions of
    /// events that came late.
    pub(super) async fn look_for_edits(
        &mut self,
        settled: Position,
    ) -> Result<Vec<Position>, Error> {
        if !self.edits.is_due() {
            return Ok(Vec::new());
        }
        let looking = self
            .edits
            .look(&mut self.connection, &self.statements.edits, settled);
        attended(&self.database, STATEMENT_TIMEOUT, looking).await?
    }

    pub(super) fn floor(&self) -> Position {
        self.floor
    }

    pub(super) fn proof(&self) -> Option<&Running> {
        self.running.as_ref()
    }

    /// Begins a proof that everything up to `upto`, which is visible, is settled.
    pub(super) async fn begin_proof(&mut self, upto: Position, whole: bool) -> Result<(), Error> {
        let (holders, writers) = self.holders().await?;
        let proof = Proof::begin(upto, &holders);
        self.running = Some(Running {
            waiting_for: waited_for(&proof, &holders, writers),
            proof,
            since: SystemTime::now(),
            begun: Instant::now(),
            whole,
        });
        self.conclude();
        Ok(())
    }

    /// Looks at the holders again, if a proof is running.
    pub(super) async fn observe(&mut self) -> Result<(), Error> {
        if self.running.is_none() {
            return Ok(());
        }
        let (holders, writers) = self.holders().await?;
        if let Some(running) = &mut self.running {
            running.proof.observe(&holders);
            running.waiting_for = waited_for(&running.proof, &holders, writers);
        }
        self.conclude();
        Ok(())
    }

    /// Ends a proof of what is settled anyway, so that the next gap gets one of its own.
    pub(super) fn passed(&mut self, settled: Position) {
        self.running
            .take_if(|running| running.proof.upto() <= settled);
    }

    fn conclude(&mut self) {
        let settled = self
            .running
            .as_ref()
            .and_then(|running| running.proof.settled());
        if let Some(settled) = settled {
            self.floor = self.floor.max(settled);
            self.running = None;
        }
    }

    async fn holders(&mut self) -> Result<(Vec<Holder>, Vec<Writer>), Error> {
        let statement = match self.gap_proof {
            GapProof::Writers => include_str!("../sql/writers.sql"),
            GapProof::AllTransactions => include_str!("../sql/transactions.sql"),
        };
        let reading = sqlx::query(statement)
            .bind(self.table)
            .fetch_all(&mut self.connection);
        let found = attended(&self.database, STATEMENT_TIMEOUT, reading).await??;
        let mut holders = Vec::with_capacity(found.len());
        let mut writers = Vec::with_capacity(found.len());
        for row in &found {
            let pid: Option<i32> = row.try_get(1)?;
            holders.push(Holder {
                virtual_transaction: row.try_get(0)?,
                pid,
            });
            writers.push(Writer {
                pid,
                application_name: row.try_get(2)?,
                user: row.try_get(3)?,
                since: row.try_get::<Option<Micros>, _>(4)?.map(|micros| micros.0),
            });
        }
        Ok((holders, writers))
    }

    /// Makes sure that the last known event still stands there, and tells the last one up to a position.
    pub(super) async fn look(
        &mut self,
        known: Option<&Anchor>,
        upto: Position,
    ) -> Result<Sight, Error> {
        let at = known.map_or(upto, |known| known.position);
        let looking = anchor::look(&mut self.connection, &self.layout, at, upto);
        let sight = attended(&self.database, STATEMENT_TIMEOUT, looking).await??;
        if let Some(known) = known {
            known.stands(sight.found.as_deref())?;
        }
        Ok(sight)
    }

    /// The highest visible position.
    pub(super) async fn head(&mut self) -> Result<Position, Error> {
        let reading = sqlx::query(self.statements.head.clone()).fetch_one(&mut self.connection);
        let row = attended(&self.database, STATEMENT_TIMEOUT, reading).await??;
        Ok(Position(row.try_get(0)?))
    }

    /// All rows after a position, up to a number and to a size. In the same snapshot the last known event must
    /// stand where it was read; beside the rows come the positions of what stands between it and that position.
    pub(super) async fn rows(
        &mut self,
        after: Position,
        known: Option<&Anchor>,
        events_max: i64,
        bytes_max: i64,
    ) -> Result<(Found, Vec<Position>), Error> {
        if self.careful == 0 {
            let found = self
                .read(false, after, known, events_max, bytes_max)
                .await?;
            if !found.0.withheld {
                return Ok(found);
            }
            self.careful = CAREFUL_READS;
        } else {
            self.careful -= 1;
        }
        self.read(true, after, known, events_max, bytes_max).await
    }

    async fn read(
        &mut self,
        weigh: bool,
        after: Position,
        known: Option<&Anchor>,
        events_max: i64,
        bytes_max: i64,
    ) -> Result<(Found, Vec<Position>), Error> {
        let statement = match weigh {
            true => &self.statements.sized,
            false => &self.statements.small,
        };
        let query = sqlx::query(statement.clone())
            .bind(after.0)
            .bind(events_max);
        let query = match weigh {
            true => query.bind(bytes_max),
            false => query,
        };
        let first = known.map_or(after.0 + 1, |known| known.position.0);
        let reading = query.bind(first).fetch_all(&mut self.connection);
        let found = attended(&self.database, STATEMENT_TIMEOUT, reading).await??;
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let (before, found) = split(&found, after)?;
        let late = continues(known, before)?;
        Ok((rows::found(found, events_max, bytes_max)?, late))
    }

    /// The positions after a position, up to a number.
    pub(super) async fn positions(
        &mut self,
        after: Position,
        positions_max: i64,
    ) -> Result<Vec<Position>, Error> {
        let reading = sqlx::query(self.statements.positions.clone())
            .bind(after.0)
            .bind(positions_max)
            .fetch_all(&mut self.connection);
        let found = attended(&self.database, STATEMENT_TIMEOUT, reading).await??;
        Ok(found
            .iter()
            .map(|row| row.try_get(0).map(Position))
            .collect::<Result<_, _>>()?)
    }
}

impl Statements {
    fn new(layout: &Layout, sequence: &Sequence) -> Self {
        let text = |text: String| AssertSqlSafe(Arc::<str>::from(text)).into_sql_str();
        let tail = include_str!("../sql/tail.sql");
        Self {
            head: text(layout.render(include_str!("../sql/head.sql"))),
            small: text(rows::after_known(layout, &rows::small(layout, tail), "$3")),
            sized: text(rows::after_known(layout, &rows::sized(layout, tail), "$4")),
            positions: text(layout.render(include_str!("../sql/positions.sql"))),
            edits: text(layout.render(
                &include_str!("../sql/edits.sql").replace("{last_drawn}", &sequence.last_drawn()),
            )),
        }
    }
}

/// The rows up to a position, and those after it.
fn split(rows: &[PgRow], after: Position) -> Result<(&[PgRow], &[PgRow]), sqlx::Error> {
    let mut before = 0;
    for row in rows {
        if row.try_get::<i64, _>(0)? > after.0 {
            break;
        }
        before += 1;
    }
    Ok(rows.split_at(before))
}

/// Makes sure that the known event stands first. What else stands between it and the mark came late.
fn continues(known: Option<&Anchor>, rows: &[PgRow]) -> Result<Vec<Position>, Error> {
    let Some(known) = known else {
        return Ok(Vec::new());
    };
    let mut rows = rows.iter();
    let first = match rows.next() {
        Some(row) => Some((row.try_get::<i64, _>(0)?, row.try_get::<uuid::Uuid, _>(1)?)),
        None => None,
    };
    let found = first
        .filter(|(position, _)| *position == known.position.0)
        .map(|(_, id)| id.to_string());
    known.stands(found.as_deref())?;
    let late = rows.map(|row| row.try_get(0).map(Position));
    Ok(late.collect::<Result<_, _>>()?)
}

fn waited_for(proof: &Proof, holders: &[Holder], writers: Vec<Writer>) -> Vec<Writer> {
    holders
        .iter()
        .zip(writers)
        .filter(|(holder, _)| proof.waits_for(holder))
        .map(|(_, writer)| writer)
        .collect()
}

async fn within<T>(
    database: &'static str,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::time::timeout(STATEMENT_TIMEOUT, call)
        .await
        .map_err(|_| Error::Database(format!("no answer from the {database} database")))?
}
