//! Opening sessions: which settings each purpose needs, and the bound on every answer.
//!
//! sqlx sets neither keep-alives nor a user time-out on its sockets, so a call may wait for ever on a dead
//! peer. Hence two guards: settings that make the *server* let go, and [`bounded`], which gives every await
//! a limit after which the caller must drop the connection.

use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _};

use super::error::Error;

/// Longest wait for a new session.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// An answer that stays out for this long is in doubt.
const DOUBT_AFTER: Duration = Duration::from_secs(5);

/// `application_name` is cut by the server beyond this many bytes.
const APPLICATION_NAME_BYTES_MAX: usize = 63;

/// For a session that reads a table in the order of its positions, by that index and no other, however small or large the
/// table looks. It is planned once; and where nothing but a scan will do, there is no compiling for how dear that looks.
const BY_POSITION: [(&str, &str); 4] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("jit", "off"),
];

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

    /// `(setting, value, whether a refusal is tolerated)`, in milliseconds where the unit matters.
    fn settings(&self) -> Vec<(&'static str, String, bool)> {
        let ms = |d: Duration| format!("{}ms", d.as_millis());
        let mut settings = vec![
            (
                "default_transaction_isolation",
                "read committed".to_owned(),
                false,
            ),
            ("tcp_keepalives_idle", "3".to_owned(), true),
            ("tcp_keepalives_interval", "1".to_owned(), true),
            ("tcp_keepalives_count", "3".to_owned(), true),
            ("tcp_user_timeout", "6s".to_owned(), true),
            ("timezone", "UTC".to_owned(), false),
            ("datestyle", "ISO, MDY".to_owned(), false),
            ("intervalstyle", "postgres".to_owned(), false),
            ("extra_float_digits", "1".to_owned(), true),
            // Rows that a policy would hide become an error.
            ("row_security", "off".to_owned(), false),
        ];
        match self {
            Self::Lock {
                server_lease,
                local_lease,
            } => settings.extend([
                ("idle_session_timeout", ms(*server_lease), false),
                (
                    "idle_in_transaction_session_timeout",
                    ms(*server_lease),
                    false,
                ),
                ("statement_timeout", ms(*local_lease), false),
                ("lock_timeout", "1s".to_owned(), false),
                ("client_connection_check_interval", "2s".to_owned(), true),
            ]),
            Self::Listen => settings.push(("idle_session_timeout", "0".to_owned(), false)),
            Self::Read | Self::Lookup => settings.extend([
                ("idle_session_timeout", "0".to_owned(), false),
                ("statement_timeout", "30s".to_owned(), false),
                ("lock_timeout", "3s".to_owned(), false),
                ("client_connection_check_interval", "500ms".to_owned(), true),
            ]),
            Self::Write => settings.extend([
                ("idle_session_timeout", "0".to_owned(), false),
                (
                    "idle_in_transaction_session_timeout",
                    "5s".to_owned(),
                    false,
                ),
                ("statement_timeout", "30s".to_owned(), false),
                ("lock_timeout", "3s".to_owned(), false),
                ("client_connection_check_interval", "500ms".to_owned(), true),
                ("synchronous_commit", "on".to_owned(), true),
            ]),
            Self::Admin => settings.extend([
                ("statement_timeout", "60s".to_owned(), false),
                ("lock_timeout", "10s".to_owned(), false),
            ]),
        }
        if matches!(self, Self::Lookup | Self::Write) {
            let once = "force_generic_plan".to_owned();
            settings.push(("plan_cache_mode", once, true));
        }
        settings
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

    /// Connect options with the application name set, for pools that sqlx manages itself.
    ///
    /// # Errors
    /// When the URL cannot be understood; the message does not repeat it.
    pub fn options(&self, purpose: &Purpose) -> Result<PgConnectOptions, Error> {
        let options: PgConnectOptions =
            self.url
                .expose_secret()
                .parse()
                .map_err(|error: sqlx::Error| Error::Connect {
                    database: self.name,
                    reason: format!("the URL is malformed: {error}"),
                    sqlstate: None,
                })?;
        Ok(options
            .application_name(&self.application_name(purpose))
            .extra_float_digits(None)
            .disable_statement_logging())
    }

    /// Opens a session with the settings of its purpose.
    ///
    /// # Errors
    /// [`Error::Connect`] when the server refuses or cannot be reached, [`Error::TimedOut`] after
    /// [`CONNECT_TIMEOUT`].
    pub async fn connect(&self, purpose: &Purpose) -> Result<PgConnection, Error> {
        let options = self.options(purpose)?;
        let opening = async {
            let mut connection = options
                .connect()
                .await
                .map_err(|error| self.refused(error, &options))?;
            apply(&mut connection, purpose).await?;
            Ok(connection)
        };
        match tokio::time::timeout(CONNECT_TIMEOUT, opening).await {
            Ok(done) => done,
            Err(_) => Err(Error::TimedOut {
                database: self.name,
                limit: CONNECT_TIMEOUT,
            }),
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

/// Sends the settings of a purpose as plain statements, which every pooler passes on.
///
/// # Errors
/// When a setting that is needed is refused.
pub async fn apply(connection: &mut PgConnection, purpose: &Purpose) -> Result<(), Error> {
    apply_settings(connection, &purpose.settings()).await
}

/// Settings for a session that is to read a table in the order of its positions.
///
/// # Errors
/// When the session is lost.
pub async fn apply_by_position(connection: &mut PgConnection) -> Result<(), Error> {
    let settings = BY_POSITION.map(|(name, value)| (name, value.to_owned(), true));
    apply_settings(connection, &settings).await
}

async fn apply_settings(
    connection: &mut PgConnection,
    settings: &[(&'static str, String, bool)],
) -> Result<(), Error> {
    let set = |name: &str, value: &str| format!("SET {name} = '{value}'");
    let script = |with_optional: bool| {
        let wanted = settings
            .iter()
            .filter(|(_, _, tolerated)| with_optional || !tolerated);
        let statements: Vec<String> = wanted.map(|(name, value, _)| set(name, value)).collect();
        AssertSqlSafe(statements.join("; "))
    };
    // One round trip, as a rule. A refused setting undoes all of them.
    match connection.execute(script(true)).await.map_err(Error::from) {
        Ok(_) => return Ok(()),
        Err(error) if error.sqlstate().is_none() => return Err(error),
        Err(_) => {}
    }
    if settings.iter().any(|(_, _, tolerated)| !tolerated) {
        connection.execute(script(false)).await?;
    }
    for (name, value, _) in settings.iter().filter(|(_, _, tolerated)| *tolerated) {
        if let Err(error) = connection.execute(AssertSqlSafe(set(name, value))).await {
            let error = Error::from(error);
            if error.sqlstate().is_none() {
                return Err(error);
            }
            tracing::debug!(setting = name, %error, "the server refused an optional setting");
        }
    }
    Ok(())
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
    let doubt = async {
        loop {
            tokio::time::sleep(DOUBT_AFTER).await;
            match database.connect(&Purpose::Admin).await {
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
