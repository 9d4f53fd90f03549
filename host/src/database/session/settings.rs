//! What a session sets for itself, so that nothing that a role, a database or the server sets changes what it does.
//!
//! Values must read and write the same everywhere, names must mean the same everywhere, and a session must end neither
//! earlier nor later than its purpose says.

use std::time::Duration;

use super::Purpose;

/// One setting: its name, its value as it stands in SQL, and whether a refusal is tolerated.
pub(super) type Setting = (&'static str, String, bool);

/// Names and values mean the same whatever a role or database sets. A path in front of `pg_catalog` would put another
/// type, function or operator in the place of the server's own.
const MEANING: [(&str, &str); 13] = [
    ("search_path", "pg_catalog, pg_temp"),
    ("default_transaction_isolation", "'read committed'"),
    ("default_transaction_deferrable", "off"),
    ("timezone", "'UTC'"),
    ("datestyle", "'ISO, MDY'"),
    ("intervalstyle", "'postgres'"),
    ("standard_conforming_strings", "on"),
    ("array_nulls", "on"),
    ("bytea_output", "'hex'"),
    ("transform_null_equals", "off"),
    ("quote_all_identifiers", "off"),
    ("client_min_messages", "'warning'"),
    // Rows that a policy would hide become an error.
    ("row_security", "off"),
];

/// The server notices a client that is gone, where its system can tell it.
const PRESENCE: [(&str, &str); 5] = [
    ("tcp_keepalives_idle", "3"),
    ("tcp_keepalives_interval", "1"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "'6s'"),
    ("extra_float_digits", "1"),
];

/// For a session that reads a table in the order of its positions, by that index and no other, however small or large the
/// table looks. It is planned once; and where nothing but a scan will do, there is no compiling for how dear that looks.
const BY_POSITION: [(&str, &str); 6] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_indexscan", "on"),
    ("enable_indexonlyscan", "on"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("jit", "off"),
];

/// When a session ends by itself. Zero: never.
struct Limits {
    idle: Duration,
    idle_in_transaction: Duration,
    statement: Duration,
    lock: Duration,
    /// How often a running statement looks whether its client is there.
    presence: Option<Duration>,
}

impl Limits {
    const fn of(purpose: &Purpose) -> Self {
        let never = Duration::ZERO;
        match purpose {
            Purpose::Lock {
                server_lease,
                local_lease,
            } => Self {
                idle: *server_lease,
                idle_in_transaction: *server_lease,
                statement: *local_lease,
                lock: Duration::from_secs(1),
                presence: Some(Duration::from_secs(2)),
            },
            Purpose::Listen | Purpose::Read | Purpose::Lookup => Self {
                idle: never,
                idle_in_transaction: never,
                statement: Duration::from_secs(30),
                lock: Duration::from_secs(3),
                presence: Some(Duration::from_millis(500)),
            },
            Purpose::Write => Self {
                idle: never,
                idle_in_transaction: Duration::from_secs(5),
                statement: Duration::from_secs(30),
                lock: Duration::from_secs(3),
                presence: Some(Duration::from_millis(500)),
            },
            // A command that waits or watches keeps its session for as long as its user likes.
            Purpose::Admin => Self {
                idle: never,
                idle_in_transaction: Duration::from_secs(60),
                statement: Duration::from_secs(60),
                lock: Duration::from_secs(10),
                presence: None,
            },
        }
    }
}

/// Everything that a session of this purpose sets.
pub(super) fn of(purpose: &Purpose) -> Vec<Setting> {
    let ms = |limit: Duration| format!("'{}ms'", limit.as_millis());
    let limits = Limits::of(purpose);
    let mut settings = fixed(&MEANING, false);
    settings.extend(fixed(&PRESENCE, true));
    settings.extend([
        ("idle_session_timeout", ms(limits.idle), false),
        (
            "idle_in_transaction_session_timeout",
            ms(limits.idle_in_transaction),
            false,
        ),
        ("statement_timeout", ms(limits.statement), false),
        ("lock_timeout", ms(limits.lock), false),
    ]);
    if let Some(presence) = limits.presence {
        settings.push(("client_connection_check_interval", ms(presence), true));
    }
    if matches!(purpose, Purpose::Write) {
        settings.push(("synchronous_commit", "on".to_owned(), true));
    }
    if matches!(purpose, Purpose::Lookup | Purpose::Write) {
        let once = "force_generic_plan".to_owned();
        settings.push(("plan_cache_mode", once, true));
    }
    settings
}

/// What a session that reads by position sets beside.
pub(super) fn by_position() -> Vec<Setting> {
    fixed(&BY_POSITION, true)
}

fn fixed(all: &[(&'static str, &'static str)], tolerated: bool) -> Vec<Setting> {
    all.iter()
        .map(|&(name, value)| (name, value.to_owned(), tolerated))
        .collect()
}

/// The same as one text.
pub(super) fn script(settings: &[Setting], with_tolerated: bool) -> String {
    settings
        .iter()
        .filter(|(_, _, tolerated)| with_tolerated || !tolerated)
        .map(|(name, value, _)| set(name, value))
        .collect()
}

/// One of them.
pub(super) fn set(name: &str, value: &str) -> String {
    format!("SET {name} = {value}; ")
}
