//! One look at the store: what of it is settled now.
//!
//! The order within a look is the proof's: first the holders, then the rows in a new snapshot. What is missing
//! in that snapshot at or below the floor was rolled back.

use crate::database::listener::ListenerState;
use crate::event_store::error::Error;
use crate::event_store::event::{Anchor, Event, Position};
use crate::event_store::gap::{deliverable, missing};
use crate::event_store::mark::{Held, Mark, SourceState};

use super::Service;
use super::session::Session;

/// Rows and bytes of one look near the head, and positions of one look far behind it.
const NEAR_EVENTS_MAX: i64 = 500;
const NEAR_BYTES_MAX: i64 = 8 << 20;
const FAR_POSITIONS_MAX: i64 = 20_000;

/// Farther behind than this, rows are not read here.
const NEAR_DISTANCE: i64 = 5_000;

/// What one look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// There may be more at once.
    More,
    /// At the end, or at a gap.
    Waiting,
}

/// What a look makes known, once nothing of it can fail any more.
struct Told {
    /// The mark that the look began at.
    from: Position,
    /// The events up to `settled`; none when only positions were read.
    events: Option<Vec<Event>>,
    /// The last event up to `settled`.
    anchor: Option<Anchor>,
    settled: Position,
    head: Position,
    /// Something is missing after `settled` that is not settled.
    gap: bool,
    /// Positions that were passed without an event.
    skipped: u64,
    listener: ListenerState,
}

impl Service {
    /// A session's first step: when the head is far away, it is proven once and for all that lies before.
    pub(super) async fn begin(&self, session: &mut Session) -> Result<(), Error> {
        let head = session.head().await?;
        if head.0 - session.floor().0 > NEAR_DISTANCE {
            session.begin_proof(head, true).await?;
        }
        Ok(())
    }

    pub(super) async fn look(
        &self,
        session: &mut Session,
        listener: ListenerState,
    ) -> Result<Look, Error> {
        session.observe().await?;
        let (mark, anchor) = {
            let mark = self.mark.borrow();
            (mark.settled_upto, mark.anchor.clone())
        };
        let far = session.proof().is_some_and(|running| running.whole)
            || session.floor().0 - mark.0 > NEAR_DISTANCE;
        if far {
            self.look_far(session, mark, anchor, listener).await
        } else {
            self.look_near(session, mark, anchor, listener).await
        }
    }

    async fn look_near(
        &self,
        session: &mut Session,
        mark: Position,
        anchor: Option<Anchor>,
        listener: ListenerState,
    ) -> Result<Look, Error> {
        let (found, late) = session
            .rows(mark, anchor.as_ref(), NEAR_EVENTS_MAX, NEAR_BYTES_MAX)
            .await?;
        self.found_late(&late)?;
        let last = found.events.last().map(|event| event.position);
        let positions = || found.events.iter().map(|event| event.position);
        let count = deliverable(mark, session.floor(), positions());
        let gap = count < found.events.len();
        let skipped = missing(mark, positions().take(count));
        let cut = found.cut;
        let mut events = found.events;
        events.truncate(count);
        let mut settled = events.last().map_or(mark, |event| event.position);
        if !gap && !cut {
            settled = settled.max(session.floor());
        }
        // Beyond a cut the head is not seen; otherwise it is the last row.
        let head = if cut {
            session.head().await?
        } else {
            last.unwrap_or(settled)
        };
        session.passed(settled);
        if let (true, None, Some(last)) = (gap, session.proof(), last) {
            session.begin_proof(last, false).await?;
        }
        // Nobody holds the gap open: look again at once, in a new snapshot.
        let passable = gap && last.is_some_and(|last| session.floor() >= last);
        if cut && !gap && session.proof().is_none() && head.0 - settled.0 > NEAR_DISTANCE {
            session.begin_proof(head, true).await?;
        }
        self.publish(
            session,
            Told {
                from: mark,
                anchor: events.last().map(Event::anchor).or(anchor),
                events: Some(events),
                settled,
                head,
                gap: gap && !passable,
                skipped,
                listener,
            },
        )?;
        Ok(if passable || (cut && !gap) {
            Look::More
        } else {
            Look::Waiting
        })
    }

    /// Positions only. Everything up to the floor is settled at once; beyond it, what has no gap.
    async fn look_far(
        &self,
        session: &mut Session,
        mark: Position,
        anchor: Option<Anchor>,
        listener: ListenerState,
    ) -> Result<Look, Error> {
        let settled = if session.floor() > mark {
            session.floor()
        } else {
            let positions = session.positions(mark, FAR_POSITIONS_MAX).await?;
            let count = deliverable(mark, session.floor(), positions.iter().copied());
            count.checked_sub(1).map_or(mark, |last| positions[last])
        };
        let sight = session.look(anchor.as_ref(), settled).await?;
        let head = sight.head;
        session.passed(settled);
        let told = Told {
            from: mark,
            anchor: sight.last,
            events: None,
            settled,
            head,
            gap: settled == mark && head > settled,
            skipped: 0,
            listener,
        };
        self.publish(session, told)?;
        Ok(if settled > mark {
            Look::More
        } else {
            Look::Waiting
        })
    }

    /// The last step of a look: nothing is awaited here, so that a look is published as a whole or not at all.
    /// Whoever follows a look that failed half way begins at the same mark, and at the same end of the ring.
    fn publish(&self, session: &Session, told: Told) -> Result<(), Error> {
        if told.settled > told.from {
            let mut ring = self.ring();
            match told.events {
                Some(events) => ring.extend(told.from, events, told.settled)?,
                None => ring.restart(told.settled)?,
            }
        }
        // Proven: no row above the mark is left whose predecessors are in doubt.
        let at_head = session.proof().is_none() && !told.gap && told.settled >= told.head;
        if told.skipped > 0 {
            tracing::debug!(
                count = told.skipped,
                upto = told.settled.0,
                "passed positions whose transactions were rolled back"
            );
        }
        self.mark.send_if_modified(|mark| {
            let position = Position(told.settled.0 + 1);
            let before = mark.held.as_ref().filter(|held| held.position == position);
            let held = session.proof().filter(|_| told.gap).map(|running| Held {
                position,
                since: before.map_or(running.since, |held| held.since.min(running.since)),
                waiting_for: running.waiting_for.clone(),
            });
            if held.is_some() && before.is_none() {
                self.metrics.gap_waits.inc();
            }
            let next = Mark {
                settled_upto: told.settled.max(mark.settled_upto),
                anchor: told.anchor,
                late: mark.late.clone(),
                head: told.head.max(mark.head).max(told.settled),
                proven: mark.proven || at_head,
                skipped: mark.skipped + told.skipped,
                held,
                listener: told.listener,
                source: SourceState::Ok,
            };
            let changed = *mark != next;
            *mark = next;
            changed
        });
        Ok(())
    }
}
