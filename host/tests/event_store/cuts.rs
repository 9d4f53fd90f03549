//! The read session is lost at every place of a look, and each event still comes once.
//!
//! A network that counts messages cuts the session before the first one of a look's answers, before the second, and
//! so on, until a look goes through uncut. Each time there are new events to find, so that what a lost look has left
//! behind would be delivered again.

use projector_host::event_store::event::{Position, Subscription};
use projector_host::event_store::{ListenerState, Mark, Options};
use projector_testkit::proxy::Proxy;
use sqlx::Row as _;

use super::support::*;

/// The purpose of the session that is cut.
const READ: &str = "read";

/// More than one page of a look.
const MORE_THAN_A_PAGE: usize = 620;

/// Numbers that nobody used: behind them the head is so far away that it is proven once, and no rows are read here.
const FAR: usize = 6_000;

/// No look has so many messages.
const MESSAGES_MAX: u64 = 80;

/// A store behind a network, and a reader that looks when it is woken and at no other time.
struct Cut {
    store: Store,
    network: Proxy,
    reader: Reader,
    writer: Writer,
    /// Where reading has arrived, and all that came.
    at: Position,
    came: Vec<i64>,
}

impl Cut {
    async fn begin() -> Self {
        let store = Store::create().await;
        let network = Proxy::before(store.url(), 1);
        let options = Options {
            notify: true,
            poll_interval: NEVER,
            ..options(network.url())
        };
        let reader = Reader::start(options, Position(0));
        let writer = store.writer("writer").await;
        let cut = Self {
            store,
            network,
            reader,
            writer,
            at: Position(0),
            came: Vec::new(),
        };
        cut.reader
            .until("it listens at the head", |mark| {
                mark.proven && mark.listener == ListenerState::Listening
            })
            .await;
        cut
    }

    /// Appends events in one transaction, which leaves so many numbers unused before the last one.
    async fn appends(&mut self, events: usize, away: usize) -> Position {
        self.writer.run("BEGIN").await;
        self.writer.append("a", "Happened", events - 1).await;
        let unused = format!(
            "SELECT nextval(pg_get_serial_sequence('event_store.events', 'position')) \
             FROM generate_series(1, {away})"
        );
        self.writer.run(&unused).await;
        let last = self.writer.one("a").await;
        self.writer.run("COMMIT").await;
        last
    }

    /// Everything that came is read, beginning where the last reading ended.
    async fn reads(&mut self, upto: Position) {
        self.reader.settled(upto).await;
        let feed = &self.reader.feed;
        let batches = read(feed, self.at, upto, &Subscription::default(), LIMITS).await;
        self.came.extend(positions(&batches));
        self.at = upto;
    }

    /// Waits until the next look is cut, or until the mark says that it went through; says whether it was cut.
    async fn is_cut(&self, before: u64, through: impl Fn(&Mark) -> bool) -> bool {
        let mut mark = self.reader.feed.mark();
        let waiting = async {
            loop {
                if self.network.cuts() > before {
                    return true;
                }
                if through(&mark.borrow_and_update()) {
                    return self.network.cuts() > before;
                }
                // A cut is told by the failure that follows it.
                mark.changed().await.expect("the service runs");
            }
        };
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .expect("the look ends one way or the other")
    }

    /// Each event of the store came once, in order.
    async fn came_once(&mut self, walked: u64) {
        let rows = sqlx::query("SELECT position FROM event_store.events ORDER BY position")
            .fetch_all(&mut self.writer.connection)
            .await
            .expect("all positions");
        let stored: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(self.came, stored, "after {walked} cuts");
    }
}

/// Cuts look after look, each one message later, with so many new events each time, the last of them so far away.
async fn walk(events: usize, away: usize, messages_min: u64) {
    let mut cut = Cut::begin().await;
    // The first look of a session prepares its statements; the looks to come do not.
    let first = cut.appends(events, away).await;
    cut.reads(first).await;
    for messages in 0..MESSAGES_MAX {
        let before = cut.network.cuts();
        cut.network.cut_after(READ, messages);
        let last = cut.appends(events, away).await;
        let was_cut = cut.is_cut(before, |mark| mark.settled_upto >= last).await;
        cut.network.cut_no_more();
        cut.reads(last).await;
        cut.came_once(messages).await;
        if !was_cut {
            assert!(messages >= messages_min, "only {messages} places were cut");
            return;
        }
    }
    panic!("no look went through uncut");
}

/// Bind complete, a row, another, the end of the statement, ready: five of one statement.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_near_the_head() {
    walk(3, 0, 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_more_than_a_page() {
    // Two pages, and the head between them.
    walk(MORE_THAN_A_PAGE, 0, 14).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_far_behind() {
    walk(MORE_THAN_A_PAGE, FAR, 14).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_with_a_gap_that_begins_a_proof() {
    let mut cut = Cut::begin().await;
    let first = cut.writer.append("a", "Happened", 3).await;
    cut.reads(first).await;
    let mut other = cut.store.writer("other").await;
    for messages in 0..MESSAGES_MAX {
        let before = cut.network.cuts();
        // Two before the gap and one behind it appear at once.
        cut.writer.run("BEGIN").await;
        cut.writer.append("a", "Happened", 2).await;
        other.run("BEGIN").await;
        let missing = other.append("b", "Happened", 1).await;
        let last = cut.writer.append("a", "Happened", 1).await;
        cut.network.cut_after(READ, messages);
        cut.writer.run("COMMIT").await;
        let held = |mark: &Mark| {
            let held = mark.held.as_ref();
            held.is_some_and(|held| held.position == missing)
        };
        let was_cut = cut.is_cut(before, held).await;
        cut.network.cut_no_more();
        other.run("COMMIT").await;
        cut.reads(last).await;
        cut.came_once(messages).await;
        if !was_cut {
            // The rows, and who holds the gap.
            assert!(messages >= 7, "only {messages} places were cut");
            return;
        }
    }
    panic!("no look went through uncut");
}
