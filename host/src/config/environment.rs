//! What comes from outside the file: environment variables and flags.
//!
//! Promises: this is the only place of the host that reads the process environment, and it reads it once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use super::fault::Fault;
use super::reading::{Source, not_text};

/// Process settings that may be overridden: key, environment variable, flag.
pub const LAYERED: [(&str, &str, &str); 4] = [
    ("host.node", "PROJECTOR_NODE", "--node"),
    ("host.log", "PROJECTOR_LOG", "--log"),
    ("host.log_format", "PROJECTOR_LOG_FORMAT", "--log-format"),
    ("http.listen", "PROJECTOR_HTTP_LISTEN", "--http-listen"),
];

/// A snapshot of the environment.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// That of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// The same with one more variable.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// The value of a variable; an empty one counts as not set.
    #[must_use]
    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.0
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }

    /// The value of a variable as text; one that is not UTF-8 is a fault.
    pub(super) fn get(&self, name: &str) -> Result<Option<&str>, Fault> {
        match self.get_os(name) {
            None => Ok(None),
            Some(value) => match value.to_str() {
                Some(text) => Ok(Some(text)),
                None => Err(not_text(&Source::Environment(name.to_owned()))),
            },
        }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl<K: Into<OsString>, V: Into<OsString>, const N: usize> From<[(K, V); N]> for Environment {
    fn from(variables: [(K, V); N]) -> Self {
        Self(
            variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

/// What the command line overrides, as it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--node`
    pub node: Option<String>,
    /// `--log`
    pub log: Option<String>,
    /// `--log-format`
    pub log_format: Option<String>,
    /// `--http-listen`
    pub http_listen: Option<String>,
}

impl Flags {
    fn get(&self, flag: &str) -> Option<&str> {
        match flag {
            "--node" => self.node.as_deref(),
            "--log" => self.log.as_deref(),
            "--log-format" => self.log_format.as_deref(),
            "--http-listen" => self.http_listen.as_deref(),
            _ => None,
        }
    }
}

/// One override.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub(super) text: String,
    pub(super) source: Source,
}

/// The overrides by key.
pub(super) type Layers = BTreeMap<&'static str, Layer>;

/// Environment below flags.
pub(super) fn layers(environment: &Environment, flags: &Flags) -> (Layers, Vec<Fault>) {
    let mut layers = Layers::new();
    let mut faults = Vec::new();
    for (key, variable, flag) in LAYERED {
        if let Some(text) = flags.get(flag) {
            let source = Source::Flag(flag.to_owned());
            layers.insert(
                key,
                Layer {
                    text: text.to_owned(),
                    source,
                },
            );
            continue;
        }
        match environment.get(variable) {
            Ok(None) => {}
            Ok(Some(text)) => {
                let source = Source::Environment(variable.to_owned());
                layers.insert(
                    key,
                    Layer {
                        text: text.to_owned(),
                        source,
                    },
                );
            }
            Err(fault) => faults.push(fault),
        }
    }
    (layers, faults)
}
