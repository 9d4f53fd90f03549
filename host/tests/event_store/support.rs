//! A store of its own for each test, sessions that write to it, and a reader.

use std::time::Duration;

use projector_host::database::identifier::Identifier;
use projector_host::database::migrate::{self, Part, Target};
use projector_host::database::session::{Database, Purpose};
use projector_host::event_store::event::{Batch, Position, Subscription};
use projector_host::event_store::{BatchLimits, Error, Feed, GapProof, Mark, Options, Service};
use projector_testkit::{TestDatabase, test_database};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, Row as _};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Longest wait for anything that must happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Longer than any test: what happens meanwhile was not found by polling.
pub const NEVER: Duration = Duration::from_secs(3_600);

pub const LIMITS: BatchLimits = BatchLimits {
    events_max: 10_000,
    bytes_max: 8 << 20,
};

/// A migrated event store in a database of its own.
pub struct Store {
    pub database: TestDatabase,
}

/// A session that writes.
pub struct Writer {
    pub connection: PgConnection,
    pub pid: i32,
}

/// A running service and its feed.
pub struct Reader {
    pub feed: Feed,
    pub ended: JoinHandle<Result<(), Error>>,
    _stop: DropGuard,
}

pub fn schema() -> Identifier {
    Identifier::new("event_store").expect("the name is fine")
}

pub fn database(url: &str) -> Database {
    Database::new("event store", url.to_owned().into(), "test", "reader")
}

pub fn options(url: &str) -> Options {
    Options {
        database: database(url),
        schema: schema(),
        poll_interval: Duration::from_millis(50),
        notify: false,
        gap_proof: GapProof::Writers,
    }
}

pub async fn migrate(url: &str) {
    let target = Target {
        part: Part::EventStore,
        schema: schema(),
    };
    migrate::up(&database(url), &target)
        .await
        .expect("the migrations can be applied");
}

impl Store {
    pub async fn create() -> Self {
        let database = test_database().expect("a database");
        migrate(database.url()).await;
        Self { database }
    }

    pub fn url(&self) -> &str {
        self.database.url()
    }

    pub async fn writer(&self, name: &str) -> Writer {
        Writer::connect(self.url(), name).await
    }

    /// A reader that starts at the beginning.
    pub fn reader(&self) -> Reader {
        Reader::start(options(self.url()), Position(0))
    }
}

impl Writer {
    pub async fn connect(url: &str, name: &str) -> Self {
        let options: sqlx::postgres::PgConnectOptions = url.parse().expect("a URL");
        let mut connection = options
            .application_name(name)
            .connect()
            .await
            .expect("a session");
        let pid = sqlx::query_scalar("SELECT pg_backend_pid()")
            .fetch_one(&mut connection)
            .await
            .expect("its pid");
        Self { connection, pid }
    }

    pub async fn run(&mut self, sql: &str) {
        if let Err(error) = self.try_run(sql).await {
            panic!("{sql}: {error}");
        }
    }

    pub async fn try_run(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        self.connection
            .execute(AssertSqlSafe(sql.to_owned()))
            .await
            .map(drop)
    }

    pub async fn number(&mut self, sql: &str) -> i64 {
        sqlx::query(AssertSqlSafe(sql.to_owned()))
            .fetch_one(&mut self.connection)
            .await
            .expect("an answer")
            .get(0)
    }

    /// Asks until the answer is as wanted.
    pub async fn until(&mut self, sql: &str, wanted: i64) {
        let asking = async {
            while self.number(sql).await != wanted {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, asking).await.is_err() {
            panic!("waited in vain until {sql} gives {wanted}");
        }
    }

    /// Appends so many events of a type to a stream; gives the last position.
    pub async fn append(&mut self, stream: &str, event_type: &str, count: usize) -> Position {
        let event = format!(r#"{{"type":"{event_type}","data":{{"n":1}}}}"#);
        let events = vec![event; count].join(",");
        let sql =
            format!("SELECT last_position FROM event_store.append('{stream}', NULL, '[{events}]')");
        Position(self.number(&sql).await)
    }

    pub async fn one(&mut self, stream: &str) -> Position {
        self.append(stream, "Happened", 1).await
    }
}

impl Reader {
    pub fn start(options: Options, settled_upto: Position) -> Self {
        let (service, feed) = Service::new(options, settled_upto);
        Self::run(service, feed)
    }

    pub fn run(service: Service, feed: Feed) -> Self {
        let shutdown = CancellationToken::new();
        Self {
            feed,
            ended: tokio::spawn(service.run(shutdown.clone())),
            _stop: shutdown.drop_guard(),
        }
    }

    /// Waits until the mark is as wanted.
    pub async fn until(&self, what: &str, check: impl Fn(&Mark) -> bool) -> Mark {
        until(&self.feed, what, check).await
    }

    /// Waits until a gap before this position is held open by these sessions.
    pub async fn held_by(&self, position: i64, pids: &[Option<i32>]) -> Mark {
        self.until(&format!("{position} is held by {pids:?}"), |mark| {
            mark.held.as_ref().is_some_and(|held| {
                let mut found: Vec<_> = held.waiting_for.iter().map(|w| w.pid).collect();
                found.sort_unstable();
                let mut wanted = pids.to_vec();
                wanted.sort_unstable();
                held.position == Position(position) && found == wanted
            })
        })
        .await
    }

    /// Waits until everything up to a position is settled.
    pub async fn settled(&self, position: Position) -> Mark {
        let what = format!("{position} is settled");
        self.until(&what, |mark| mark.settled_upto >= position)
            .await
    }

    /// Waits until a later look saw this head, and makes sure that nothing more was settled by then.
    pub async fn still_at(&self, settled: i64, head: Position) {
        let mark = self
            .until("the head is seen", |mark| mark.head >= head)
            .await;
        assert_eq!(mark.settled_upto, Position(settled), "{mark:?}");
    }

    /// Waits until the reader's session has looked at the end of the table's file twice from now on.
    pub async fn watched_twice(&self, observer: &mut Writer) {
        let sql = "SELECT coalesce(max(extract(epoch FROM query_start) * 1000000), 0)::bigint FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%pg_relation_filenode%'";
        let mut seen = std::collections::HashSet::from([0, observer.number(sql).await]);
        let before = seen.len();
        let asking = async {
            while seen.len() < before + 2 {
                seen.insert(observer.number(sql).await);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, asking).await.is_err() {
            panic!("the end of the file was not looked at");
        }
    }

    /// The positions of all events up to a position, as a projection gets them.
    pub async fn positions(&self, upto: Position) -> Vec<i64> {
        let batches = read(
            &self.feed,
            Position(0),
            upto,
            &Subscription::default(),
            LIMITS,
        )
        .await;
        positions(&batches)
    }
}

pub async fn until(feed: &Feed, what: &str, check: impl Fn(&Mark) -> bool) -> Mark {
    let mut mark = feed.mark();
    let waiting = mark.wait_for(|mark| check(mark));
    let found = match tokio::time::timeout(PATIENCE, waiting).await {
        Ok(Ok(found)) => Some(found.clone()),
        Ok(Err(_)) => panic!("the service ended before {what}"),
        Err(_) => None,
    };
    match found {
        Some(found) => found,
        None => panic!("waited in vain until {what}: {:?}", feed.mark().borrow()),
    }
}

/// Reads batch after batch, from a position up to another, and checks what holds for every batch.
pub async fn read(
    feed: &Feed,
    after: Position,
    upto: Position,
    subscription: &Subscription,
    limits: BatchLimits,
) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    let mut at = after;
    while at < upto {
        let reading = feed.next(at, subscription, limits);
        let batch = match tokio::time::timeout(PATIENCE, reading).await {
            Ok(batch) => batch.expect("a batch"),
            Err(_) => panic!("no batch after {at}: {:?}", feed.mark().borrow()),
        };
        assert_eq!(batch.after, at);
        assert!(batch.upto > at, "progress: {batch:?}");
        assert!(batch.events.len() <= limits.events_max.max(1));
        let found: Vec<i64> = batch.events.iter().map(|event| event.position.0).collect();
        assert!(
            found
                .iter()
                .all(|position| *position > at.0 && *position <= batch.upto.0),
            "{found:?} in {at}..={}",
            batch.upto
        );
        assert!(found.is_sorted_by(|a, b| a < b), "in order: {found:?}");
        at = batch.upto;
        batches.push(batch);
    }
    batches
}

pub fn positions(batches: &[Batch]) -> Vec<i64> {
    let events = batches.iter().flat_map(|batch| &batch.events);
    events.map(|event| event.position.0).collect()
}

pub fn types(types: &[&str]) -> Subscription {
    Subscription {
        types: types.iter().map(|&name| name.to_owned()).collect(),
        stream_prefixes: vec![],
    }
}

/// The URL's session purposes that tests look for.
pub fn application_name(url: &str, purpose: &Purpose) -> String {
    database(url).application_name(purpose)
}

/// A role that may read the events, and nothing else.
pub struct Role {
    name: String,
    url: String,
}

impl Role {
    pub async fn create(store: &Store, owner: &mut Writer) -> Self {
        let name = format!("reader_{}", store.database.name());
        owner
            .run(&format!(
                "CREATE ROLE {name} LOGIN;
                 GRANT USAGE ON SCHEMA event_store TO {name};
                 GRANT SELECT ON event_store.events TO {name}"
            ))
            .await;
        let url = store.url().replace("postgres@", &format!("{name}@"));
        assert_ne!(url, store.url());
        Self { name, url }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Roles belong to the whole server: it goes, with its sessions.
    pub async fn drop(self, owner: &mut Writer) {
        let name = self.name;
        owner.run(&format!("DROP OWNED BY {name}")).await;
        let kill = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{name}'"
        );
        owner.until(&kill, 0).await;
        owner.run(&format!("DROP ROLE {name}")).await;
    }
}
