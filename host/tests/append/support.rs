//! A migrated store, sessions on it, and waiting for what must come.

use std::future::Future;
use std::time::{Duration, Instant};

use projector_host::database::error::Error;
use projector_host::database::identifier::Identifier;
use projector_host::database::migrate::{self, Target};
use projector_host::database::session::{Database, Purpose};
use projector_testkit::{TestDatabase, test_database};
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnection, PgRow};

/// Longest wait for anything that must happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A database with an event store in a schema that no code may take for granted.
pub struct Store {
    pub test: TestDatabase,
    pub database: Database,
}

pub fn schema() -> Identifier {
    identifier("shop_events")
}

pub fn identifier(name: &str) -> Identifier {
    Identifier::new(name).expect("the name is fine")
}

pub fn database(url: &str) -> Database {
    Database::new("event store", url.to_owned().into(), "test", "node")
}

impl Store {
    pub async fn new() -> Self {
        let store = Self::empty();
        migrate::up(&store.database, &Target::event_store(schema()))
            .await
            .expect("an empty database can be migrated");
        store
    }

    pub fn empty() -> Self {
        let test = test_database().expect("the test server gives a database");
        let database = database(test.url());
        Self { test, database }
    }

    pub async fn session(&self) -> PgConnection {
        self.database
            .connect(&Purpose::Admin)
            .await
            .expect("the test server takes sessions")
    }

    pub fn psql(&self, sql: &str) -> String {
        self.test.psql(sql).expect("the statement is right")
    }

    /// Every stream with its versions in order of position.
    pub fn versions(&self) -> String {
        self.psql(
            "select stream, string_agg(version::text, ',' order by position) \
               from shop_events.events group by 1 order by 1",
        )
    }

    /// Number of streams whose versions are not 1, 2, 3 and so on in order of position.
    pub fn broken_streams(&self) -> String {
        self.psql(
            "select count(distinct stream) from (select stream, version, row_number() over \
             (partition by stream order by position) as n from shop_events.events) e where version <> n",
        )
    }
}

/// Calls the function `append`.
pub async fn append(
    session: &mut PgConnection,
    stream: &str,
    expected: Option<i64>,
    events: &str,
) -> Result<(i64, i64, i64), Error> {
    let row: PgRow = sqlx::query("SELECT * FROM shop_events.append($1, $2, $3::text::jsonb)")
        .bind(stream)
        .bind(expected)
        .bind(events)
        .fetch_one(session)
        .await?;
    use sqlx::Row as _;
    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
}

pub async fn execute(session: &mut PgConnection, sql: &str) -> Result<(), Error> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(session)
        .await?;
    Ok(())
}

/// Asks again and again until the answer is yes.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) {
    let start = Instant::now();
    while !ask().await {
        assert!(start.elapsed() < PATIENCE, "never happened: {what}");
        tokio::task::yield_now().await;
    }
}

/// The SQLSTATE and the text of a refusal.
pub fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> (String, String) {
    let error = result.expect_err("it has to be refused");
    (
        error.sqlstate().unwrap_or_default().to_owned(),
        error.to_string(),
    )
}
