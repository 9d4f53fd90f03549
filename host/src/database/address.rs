//! A database's URL: every parameter is known and kept, or refused by name; several hosts may stand in it.
//!
//! The driver passes over what it does not know, with a line in the log. A parameter that secures a session would be
//! gone without anybody noticing, so the URL is read here first, and the driver gets one host at a time.
//!
//! Must never: repeat a URL, or the value of a parameter that may be a secret.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use thiserror::Error;

use crate::config::value::closest;

/// Most hosts in one URL: each gets its share of the time for a new session.
pub const HOSTS_MAX: usize = 8;

/// Parameters that the driver keeps.
const DRIVER: [&str; 18] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// Parameters that are kept here.
const OWN: [&str; 3] = ["target_session_attrs", "channel_binding", "connect_timeout"];

/// Which of several servers is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// The first that lets us in.
    #[default]
    Any,
    /// The first whose sessions may write.
    ReadWrite,
    /// The first that is no standby.
    Primary,
}

/// A URL that was read.
#[derive(Debug, Clone)]
pub struct Address {
    /// One for each host, in order; never empty.
    pub hosts: Vec<PgConnectOptions>,
    /// Which of them is meant.
    pub wanted: Wanted,
    /// Longest wait for one host, if the URL says so.
    pub connect_timeout: Option<Duration>,
}

/// Why a URL cannot be used. No text repeats it.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AddressError {
    /// A parameter that nobody knows.
    #[error("the parameter `{0}` is not known")]
    Unknown(String, String),
    /// A parameter that is known and cannot be kept.
    #[error("the parameter `{0}` cannot be kept: {1}")]
    Refused(String, &'static str),
    /// Something else.
    #[error("{0}")]
    Malformed(String),
}

impl AddressError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(_, hint) => Some(hint.clone()),
            Self::Refused(..) => Some("take it out of the URL".to_owned()),
            Self::Malformed(_) => None,
        }
    }
}

/// The parts of a URL that decide over its hosts.
#[derive(Debug, Default)]
struct Parts<'a> {
    hosts: Option<Vec<String>>,
    addresses: Option<Vec<String>>,
    ports: Option<Vec<String>>,
    rest: Vec<&'a str>,
    wanted: Wanted,
    connect_timeout: Option<Duration>,
}

impl Address {
    /// Reads a URL.
    ///
    /// # Errors
    /// When it is malformed, or has a parameter that is not known or cannot be kept.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let malformed = |text: &str| AddressError::Malformed(text.to_owned());
        let rest = url
            .strip_prefix("postgres://")
            .or_else(|| url.strip_prefix("postgresql://"))
            .ok_or_else(|| malformed("it does not begin with postgres://"))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        let (user, named) = match authority.rsplit_once('@') {
            Some((user, named)) => (format!("{user}@"), named),
            None => (String::new(), authority),
        };
        let parts = Parts::read(query)?;
        let named: Vec<&str> = named.split(',').collect();
        let listed = parts.listed()?;
        if named.len() > 1 && listed.iter().any(|one| !one.is_empty()) {
            return Err(malformed(
                "several hosts stand before the database, and `host`, `hostaddr` or `port` name others",
            ));
        }
        let count = named.len().max(listed.len());
        if count > HOSTS_MAX {
            return Err(AddressError::Malformed(format!(
                "it names {count} hosts; {HOSTS_MAX} is the most"
            )));
        }
        let mut hosts = Vec::with_capacity(count);
        for at in 0..count {
            let host = named.get(at).unwrap_or(&named[0]);
            let own = listed.get(at).map_or(&[][..], Vec::as_slice);
            // `user@/database?host=…` is libpq's, and the driver wants some host there.
            let host = match host.is_empty() && !user.is_empty() {
                true => &"localhost",
                false => host,
            };
            let pairs: Vec<&str> = parts
                .rest
                .iter()
                .copied()
                .chain(own.iter().map(String::as_str))
                .collect();
            let one = format!("postgres://{user}{host}/{database}?{}", pairs.join("&"));
            let options = one
                .parse()
                .map_err(|error: sqlx::Error| AddressError::Malformed(error.to_string()))?;
            hosts.push(options);
        }
        Ok(Self {
            hosts,
            wanted: parts.wanted,
            connect_timeout: parts.connect_timeout,
        })
    }
}

impl<'a> Parts<'a> {
    fn read(query: &'a str) -> Result<Self, AddressError> {
        let mut parts = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "host" => parts.hosts = Some(list(value)),
                "hostaddr" => parts.addresses = Some(list(value)),
                "port" => parts.ports = Some(list(value)),
                "target_session_attrs" => parts.wanted = wanted(value)?,
                "channel_binding" => channel_binding(value)?,
                "connect_timeout" => parts.connect_timeout = seconds(value)?,
                key if DRIVER.contains(&key) || is_option(key) => parts.rest.push(pair),
                key => return Err(unknown(key)),
            }
        }
        Ok(parts)
    }

    /// What the parameters say of each host.
    fn listed(&self) -> Result<Vec<Vec<String>>, AddressError> {
        let lists = [
            ("host", &self.hosts),
            ("hostaddr", &self.addresses),
            ("port", &self.ports),
        ];
        let count = lists
            .iter()
            .filter_map(|(_, list)| list.as_ref().map(Vec::len))
            .max();
        let mut all = vec![Vec::new(); count.unwrap_or(1)];
        for (key, list) in lists {
            let Some(list) = list else { continue };
            if list.len() != 1 && list.len() != all.len() {
                return Err(AddressError::Malformed(format!(
                    "`{key}` names {} of {} hosts",
                    list.len(),
                    all.len()
                )));
            }
            for (at, one) in all.iter_mut().enumerate() {
                let value = list.get(at).unwrap_or(&list[0]);
                one.push(format!("{key}={value}"));
            }
        }
        Ok(all)
    }
}

fn list(value: &str) -> Vec<String> {
    let plain = value.replace("%2C", ",").replace("%2c", ",");
    plain.split(',').map(str::to_owned).collect()
}

/// `options[statement_timeout]`, as it is or encoded.
fn is_option(key: &str) -> bool {
    key.starts_with("options[") || key.starts_with("options%5B") || key.starts_with("options%5b")
}

fn wanted(value: &str) -> Result<Wanted, AddressError> {
    match value {
        "any" => Ok(Wanted::Any),
        "read-write" => Ok(Wanted::ReadWrite),
        "primary" => Ok(Wanted::Primary),
        _ => Err(AddressError::Refused(
            "target_session_attrs".to_owned(),
            "the host needs the primary; write `read-write`, `primary` or `any`",
        )),
    }
}

fn channel_binding(value: &str) -> Result<(), AddressError> {
    match value {
        "prefer" | "disable" => Ok(()),
        _ => Err(AddressError::Refused(
            "channel_binding".to_owned(),
            "the driver binds no channels, so it can only be `prefer` or `disable`; sslmode=verify-full makes \
             sure which server answers",
        )),
    }
}

/// As libpq: whole seconds, and 0 or less means no limit of the URL's own.
fn seconds(value: &str) -> Result<Option<Duration>, AddressError> {
    let seconds: i32 = value.parse().map_err(|_| {
        AddressError::Malformed("`connect_timeout` is no whole number of seconds".to_owned())
    })?;
    let limit = u64::try_from(seconds).ok().filter(|limit| *limit > 0);
    Ok(limit.map(Duration::from_secs))
}

fn unknown(key: &str) -> AddressError {
    let known = || DRIVER.into_iter().chain(OWN);
    let hint = match closest(key, known()) {
        Some(word) => format!("did you mean `{word}`?"),
        None => {
            let mut all: Vec<&str> = known().collect();
            all.sort_unstable();
            format!("known are {}", all.join(", "))
        }
    };
    // What stands where a key is expected may be the end of a password with a `?` or `&` in it.
    let plain = key.len() <= 40
        && key
            .chars()
            .all(|c| c.is_ascii_lowercase() || matches!(c, '_' | '-'));
    let shown = if plain { key } else { "***" };
    AddressError::Unknown(shown.to_owned(), hint)
}

#[cfg(test)]
mod tests;
