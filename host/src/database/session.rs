//! Opening sessions: which settings each purpose needs, and the bound on every answer.
//!
//! sqlx sets neither keep-alives nor a user time-out on its sockets, so a call may wait for ever on a dead
//! peer. Hence two guards: settings that make the *server* let go, and [`bounded`], which gives every await
//! a limit after which the caller must drop the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, Row as _};

mod settings;

use super::address::{Address, AddressError, Wanted};
use super::error::{Error, OTHER_ENCODING};
use crate::config::fault::{MALFORMED, PARAMETER};

/// The only encoding of a database that holds every text.
const ENCODING: &str = "UTF8";

/// Longest wait for a new session.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// An answer that stays out for this long is in doubt.
const DOUBT_AFTER: Duration = Duration::from_secs(5);

/// `application_name` is cut by the server beyond this many bytes.
const APPLICATION_NAME_BYTES_MAX: usize = 63;

/// What a session is for; decides its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// Holds the leader lock: one short statement at a time, freed by the server when silent.
    Lock {
        /// The server ends the session after this much silence.
        server_lease: Duration,
        /// Longest statement.
        local_lease: Duration,
    },
    /// Receives notifications.
    Listen,
    /// Reads events, a statement a snapshot.
    Read,
    /// Applies batches and claims terms.
    Write,
    /// Answers look-ups of plugins.
    Lookup,
    /// Commands and control queries.
    Admin,
}

impl Purpose {
    /// The last part of `application_name`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Lock { .. } => "lock",
            Self::Listen => "listen",
            Self::Read => "read",
            Self::Write => "write",
            Self::Lookup => "lookup",
            Self::Admin => "admin",
        }
    }
}

/// Where a database is, and what it is called in messages.
#[derive(Debug, Clone)]
pub struct Database {
    /// `event store` or `read model`.
    pub name: &'static str,
    url: SecretString,
    group: String,
    node: String,
    /// Which of several hosts let us in last.
    reached: Arc<AtomicUsize>,
}

impl Database {
    /// A database that sessions can be opened to.
    ///
    /// `group` and `node` go into `application_name` as `projector/<group>/<node>/<purpose>`.
    #[must_use]
    pub fn new(
        name: &'static str,
        url: SecretString,
        group: impl Into<String>,
        node: impl Into<String>,
    ) -> Self {
        Self {
            name,
            url,
            group: group.into(),
            node: node.into(),
            reached: Arc::default(),
        }
    }

    /// The name under which a session of this purpose shows in `pg_stat_activity`.
    #[must_use]
    pub fn application_name(&self, purpose: &Purpose) -> String {
        let tail = format!("/{}", purpose.as_str());
        let mut name = format!("projector/{}/{}", self.group, self.node);
        let room = APPLICATION_NAME_BYTES_MAX - tail.len();
        while name.len() > room {
            name.pop();
        }
        // The server replaces anything else by `?`, so that the name could not be found again.
        name.chars()
            .map(|c| if c.is_ascii_graphic() { c } else { '_' })
            .collect::<String>()
            + &tail
    }

    /// Connect options with the application name set, for pools that sqlx manages itself. Of several hosts it is the one
    /// that is meant, which is looked for.
    ///
    /// # Errors
    /// When the URL cannot be understood (the message does not repeat it), or none of several hosts is the one.
    pub async fn options(&self, purpose: &Purpose) -> Result<PgConnectOptions, Error> {
        let mut address = self.address()?;
        let mut at = 0;
        if address.hosts.len() > 1 {
            let _closed = self.connect(purpose).await?;
            at = self.reached.load(Ordering::Relaxed);
        }
        Ok(self.named(address.hosts.swap_remove(at), purpose))
    }

    /// Opens a session with the settings of its purpose.
    ///
    /// # Errors
    /// [`Error::Connect`] when the server refuses or cannot be reached, [`Error::TimedOut`] after
    /// [`CONNECT_TIMEOUT`], [`Error::Unfit`] when a person has to mend the database or its URL.
    pub async fn connect(&self, purpose: &Purpose) -> Result<PgConnection, Error> {
        let address = self.address()?;
        match tokio::time::timeout(CONNECT_TIMEOUT, self.first(&address, purpose)).await {
            Ok(done) => done,
            Err(_) => Err(Error::TimedOut {
                database: self.name,
                limit: CONNECT_TIMEOUT,
            }),
        }
    }

    fn address(&self) -> Result<Address, Error> {
        Address::parse(self.url.expose_secret()).map_err(|error| Error::Unfit {
            code: match error {
                AddressError::Malformed(_) => MALFORMED,
                AddressError::Unknown(..) | AddressError::Refused(..) => PARAMETER,
            },
            message: format!("the URL of the {} database: {error}", self.name),
        })
    }

    fn named(&self, options: PgConnectOptions, purpose: &Purpose) -> PgConnectOptions {
        options
            .application_name(&self.application_name(purpose))
            .extra_float_digits(None)
            .disable_statement_logging()
    }

    /// A session on the first of the hosts that is meant. The one that was it before comes first, if which one it is
    /// does not depend on their order.
    async fn first(&self, address: &Address, purpose: &Purpose) -> Result<PgConnection, Error> {
        let count = address.hosts.len();
        let mut order: Vec<usize> = (0..count).collect();
        if address.wanted != Wanted::Any {
            order.rotate_left(self.reached.load(Ordering::Relaxed) % count);
        }
        let mut refusals = Vec::new();
        for at in order {
            let options = self.named(address.hosts[at].clone(), purpose);
            let opening = self.open(&options, address.wanted, purpose);
            let share = CONNECT_TIMEOUT / u32::try_from(count).unwrap_or(u32::MAX);
            let limit = address.connect_timeout.map_or(share, |own| own.min(share));
            let error = match tokio::time::timeout(limit, opening).await {
                Ok(Ok(connection)) => {
                    self.reached.store(at, Ordering::Relaxed);
                    return Ok(connection);
                }
                Ok(Err(error)) => error,
                Err(_) => Error::TimedOut {
                    database: self.name,
                    limit,
                },
            };
            // As libpq: a host that is there and says no for a reason of its own ends the search.
            if count == 1 || matches!(error, Error::Unfit { .. }) {
                return Err(error);
            }
            refusals.push((place(&options), error));
        }
        Err(self.none(refusals))
    }

    async fn open(
        &self,
        options: &PgConnectOptions,
        wanted: Wanted,
        purpose: &Purpose,
    ) -> Result<PgConnection, Error> {
        let mut connection = options
            .connect()
            .await
            .map_err(|error| self.refused(error, options))?;
        let facts = apply_settings(&mut connection, &settings::of(purpose)).await?;
        let unwanted = match wanted {
            Wanted::Any => None,
            _ if facts.in_recovery => Some("a standby"),
            Wanted::ReadWrite if facts.read_only => Some("read-only"),
            Wanted::ReadWrite | Wanted::Primary => None,
        };
        if let Some(what) = unwanted {
            return Err(Error::Connect {
                database: self.name,
                reason: format!(
                    "the server is {what}, and target_session_attrs asks for another (at {})",
                    place(options)
                ),
                sqlstate: None,
            });
        }
        facts.check(self.name)?;
        Ok(connection)
    }

    /// None of several hosts is the one. What only a person can mend is said as that, if all of them say it.
    fn none(&self, refusals: Vec<(String, Error)>) -> Error {
        let sqlstate = refusals
            .first()
            .and_then(|(_, error)| error.sqlstate())
            .filter(|first| {
                refusals
                    .iter()
                    .all(|(_, error)| error.sqlstate() == Some(*first))
            })
            .map(str::to_owned);
        let reasons = refusals.into_iter().map(|(place, error)| match error {
            Error::Connect { reason, .. } => format!("{place}: {reason}"),
            other => format!("{place}: {other}"),
        });
        Error::Connect {
            database: self.name,
            reason: format!(
                "none of its hosts can be used: {}",
                reasons.collect::<Vec<_>>().join("; ")
            ),
            sqlstate,
        }
    }

    fn refused(&self, error: sqlx::Error, options: &PgConnectOptions) -> Error {
        let error = Error::from(error);
        let sqlstate = error.sqlstate().map(str::to_owned);
        let reason = match &error {
            Error::Statement { message, .. } => message.clone(),
            // Nobody answered, so nobody else says where that was.
            Error::Lost(text) | Error::Driver(text) => format!("{text} (at {})", place(options)),
            other => other.to_string(),
        };
        Error::Connect {
            database: self.name,
            reason,
            sqlstate,
        }
    }
}

/// Where a session is opened: host and port, or the socket's folder and port.
#[must_use]
pub fn place(options: &PgConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => options.get_host().to_owned(),
    };
    format!("{host}:{}", options.get_port())
}

/// What a server told when a session was opened.
#[derive(Debug)]
struct Facts {
    encoding: String,
    read_only: bool,
    in_recovery: bool,
}

impl Facts {
    async fn ask(connection: &mut PgConnection, before: String) -> Result<Self, Error> {
        let script = before + include_str!("session/facts.sql");
        let rows = sqlx::raw_sql(AssertSqlSafe(script));
        let rows = rows.fetch_all(connection).await?;
        let row = rows
            .last()
            .ok_or_else(|| Error::Driver("a new session told nothing".to_owned()))?;
        Ok(Self {
            encoding: row.try_get(0)?,
            read_only: row.try_get::<String, _>(1)? == "on",
            in_recovery: row.try_get::<String, _>(2)? == "true",
        })
    }

    /// A text that the database cannot hold would fail in the middle of the work, and its own tables with it.
    fn check(&self, database: &'static str) -> Result<(), Error> {
        if self.encoding == ENCODING {
            return Ok(());
        }
        Err(Error::Unfit {
            code: OTHER_ENCODING,
            message: format!(
                "the {database} database has the encoding {}; events, rows and messages may have any character, \
                 so it must be {ENCODING}",
                self.encoding
            ),
        })
    }
}

/// Sends the settings of a purpose as plain statements, which every pooler passes on.
///
/// # Errors
/// When a setting that is needed is refused.
pub async fn apply(connection: &mut PgConnection, purpose: &Purpose) -> Result<(), Error> {
    apply_settings(connection, &settings::of(purpose)).await?;
    Ok(())
}

/// Settings for a session that is to read a table in the order of its positions.
///
/// # Errors
/// When the session is lost.
pub async fn apply_by_position(connection: &mut PgConnection) -> Result<(), Error> {
    apply_settings(connection, &settings::by_position()).await?;
    Ok(())
}

async fn apply_settings(
    connection: &mut PgConnection,
    settings: &[settings::Setting],
) -> Result<Facts, Error> {
    // One round trip, as a rule. A refused setting undoes all of them.
    match Facts::ask(connection, settings::script(settings, true)).await {
        Ok(facts) => return Ok(facts),
        Err(error) if error.sqlstate().is_none() => return Err(error),
        Err(_) => {}
    }
    for (name, value, _) in settings.iter().filter(|(_, _, tolerated)| *tolerated) {
        let one = settings::set(name, value);
        if let Err(error) = connection.execute(AssertSqlSafe(one)).await {
            let error = Error::from(error);
            if error.sqlstate().is_none() {
                return Err(error);
            }
            tracing::debug!(setting = name, %error, "the server refused an optional setting");
        }
    }
    Facts::ask(connection, settings::script(settings, false)).await
}

/// Gives an await that may take long a limit, and asks every five seconds whether its server can be reached at all:
/// a peer that has vanished is found out long before the limit, and a slow statement is left alone.
///
/// # Errors
/// [`Error::TimedOut`], or why the server cannot be reached. The caller must drop the connection.
pub async fn attended<T>(
    database: &Database,
    limit: Duration,
    call: impl Future<Output = T>,
) -> Result<T, Error> {
    let before = database.reached.load(Ordering::Relaxed);
    let doubt = async {
        loop {
            tokio::time::sleep(DOUBT_AFTER).await;
            match database.connect(&Purpose::Admin).await {
                // Another of its hosts answers, which says nothing of the one that is waited for.
                Ok(_) if database.reached.load(Ordering::Relaxed) != before => {
                    return Error::Lost(format!(
                        "the {} database has moved to another host",
                        database.name
                    ));
                }
                // It answers, even if with a refusal.
                Ok(_) => {}
                Err(error) if error.sqlstate().is_some() => {}
                Err(error) => return error,
            }
        }
    };
    let either = async {
        tokio::select! {
            done = call => Ok(done),
            error = doubt => Err(error),
        }
    };
    match tokio::time::timeout(limit, either).await {
        Ok(done) => done,
        Err(_) => Err(Error::TimedOut {
            database: database.name,
            limit,
        }),
    }
}

/// Gives an await on a connection a limit.
///
/// # Errors
/// [`Error::TimedOut`] when it ran out: the caller must drop the connection, since the answer may still come.
pub async fn bounded<T, E>(
    database: &'static str,
    limit: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, Error>
where
    Error: From<E>,
{
    match tokio::time::timeout(limit, call).await {
        Ok(done) => done.map_err(Error::from),
        Err(_) => Err(Error::TimedOut { database, limit }),
    }
}
