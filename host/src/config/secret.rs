//! Database URLs and the admin token: from environment variables or files, never from the configuration itself.
//!
//! Promises: a secret that is missing is a fault only for those who need it; no message repeats one.

use std::path::Path;

use secrecy::{ExposeSecret as _, SecretString};

use crate::database::address::{Address, AddressError};
use crate::database::session::place;

use super::disk;
use super::environment::Environment;
use super::fault::{Fault, MALFORMED, NO_SECRET, PARAMETER, Place};
use super::reading::{Reading, Source};

/// A secret and where it came from.
#[derive(Debug, Clone)]
pub(super) struct Secret {
    pub(super) value: SecretString,
    pub(super) source: Source,
}

/// Every secret of a configuration, or why it is not there.
#[derive(Debug, Clone)]
pub(super) struct Secrets {
    pub(super) event_store: Result<Secret, Fault>,
    pub(super) read_model: Result<Secret, Fault>,
    pub(super) admin_token: Result<Option<Secret>, Fault>,
}

impl Secrets {
    /// Before anybody looked.
    pub(super) fn none() -> Self {
        let missing = || {
            let place = Place::Named("the configuration".to_owned());
            Fault::new(NO_SECRET, place, "no database URL was looked for")
        };
        Self {
            event_store: Err(missing()),
            read_model: Err(missing()),
            admin_token: Ok(None),
        }
    }
}

/// Where to look for one secret.
pub(super) struct Lookup<'a> {
    /// What it is for, in messages.
    pub(super) what: &'a str,
    /// The key that names the variable.
    pub(super) env_key: &'a str,
    /// The variable.
    pub(super) env: &'a str,
    /// The key that names the file.
    pub(super) file_key: &'a str,
    /// The file, with its whole path.
    pub(super) file: Option<&'a Path>,
    /// A variable to look at when the first is not set.
    pub(super) fallback: Option<&'a str>,
}

/// Looks for a secret: the file when one is named, else the variable, else its fallback.
pub(super) fn find(
    reading: &Reading<'_>,
    environment: &Environment,
    lookup: &Lookup<'_>,
) -> Result<Option<Secret>, Fault> {
    if let Some(path) = lookup.file {
        return from_file(reading, lookup, path).map(Some);
    }
    for name in std::iter::once(lookup.env).chain(lookup.fallback) {
        if let Some(value) = environment.get(name)? {
            return Ok(Some(Secret {
                value: value.into(),
                source: Source::Environment(name.to_owned()),
            }));
        }
    }
    Ok(None)
}

/// Looks for a database URL and checks its form.
///
/// When nothing is set and the variable's name is the default one, libpq's own `PG*` variables are enough:
/// the driver reads them wherever the URL is silent.
pub(super) fn find_url(
    reading: &Reading<'_>,
    environment: &Environment,
    lookup: &Lookup<'_>,
) -> Result<Secret, Fault> {
    if let Some(found) = find(reading, environment, lookup)? {
        return check_url(lookup.what, found);
    }
    if !reading.is_in_file(lookup.env_key)
        && let Some(name) = ["PGHOST", "PGHOSTADDR", "PGDATABASE"]
            .into_iter()
            .find(|name| environment.get_os(name).is_some())
    {
        return Ok(Secret {
            value: "postgres://".into(),
            source: Source::Environment(name.to_owned()),
        });
    }
    let names = match lookup.fallback {
        Some(fallback) if fallback != lookup.env => {
            format!("neither {} nor {fallback} is set", lookup.env)
        }
        _ => format!("the environment variable {} is not set", lookup.env),
    };
    let hint = format!(
        "set {}=postgres://user:password@host:5432/database, or name a file that holds the URL with `{}`",
        lookup.env, lookup.file_key
    );
    let message = format!("no URL for the {} database: {names}", lookup.what);
    Err(Fault::new(NO_SECRET, reading.place_of(lookup.env_key), message).hint(hint))
}

fn from_file(reading: &Reading<'_>, lookup: &Lookup<'_>, path: &Path) -> Result<Secret, Fault> {
    let shown = path.display();
    let fault = |reason: String| {
        let message = format!("cannot read {shown} for the {}: {reason}", lookup.what);
        Fault::new(NO_SECRET, reading.place_of(lookup.file_key), message)
    };
    let text =
        disk::read_text(path, disk::SECRET_BYTES_MAX).map_err(|error| fault(error.to_string()))?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(fault("it is empty".to_owned()));
    }
    Ok(Secret {
        value: text.into(),
        source: Source::SecretFile(shown.to_string()),
    })
}

fn check_url(what: &str, found: Secret) -> Result<Secret, Fault> {
    let place = Place::Named(found.source.to_string());
    let hint = "write postgres://user:password@host:5432/database, with reserved characters of the password percent-encoded";
    let url = found.value.expose_secret();
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        let message = format!("the URL of the {what} database does not begin with postgres://");
        return Err(Fault::new(MALFORMED, place, message).hint(hint));
    }
    match Address::parse(url) {
        Ok(_) => Ok(found),
        Err(error @ AddressError::Malformed(_)) => {
            let message = format!("the URL of the {what} database is malformed: {error}");
            Err(Fault::new(MALFORMED, place, message).hint(hint))
        }
        Err(error) => {
            let message = format!("in the URL of the {what} database {error}");
            let hint = error.hint().unwrap_or_default();
            Err(Fault::new(PARAMETER, place, message).hint(hint))
        }
    }
}

/// A URL as it may be shown: user, host, port and database, no password.
pub(super) fn shown_url(secret: &Secret) -> String {
    let Ok(address) = Address::parse(secret.value.expose_secret()) else {
        return "***".to_owned();
    };
    let places: Vec<String> = address.hosts.iter().map(place).collect();
    let options = &address.hosts[0];
    let database = options.get_database().unwrap_or(options.get_username());
    format!(
        "postgres://{}:***@{}/{database}",
        options.get_username(),
        places.join(",")
    )
}
