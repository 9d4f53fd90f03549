//! The configuration: `projections.toml`, environment variables and flags, as typed values.
//!
//! Promises: every fault of a file is found in one pass and has a place, a reason and a page; an effective
//! value knows where it came from; secrets are masked in everything that is printed. Must never: guess at a
//! key that does not exist, or take a secret from the file itself.
//!
//! Layers, lowest first: defaults, file, environment, flags. Only the process settings in
//! [`environment::LAYERED`] have the last two.
#![allow(
    clippy::ptr_arg,
    reason = "a check gets the value as it was read, and a text was read as a `String`"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Serialize;
use toml::de::DeTable;

mod complete;
pub mod disk;
pub mod environment;
pub mod fault;
pub mod later;
mod reading;
mod rules;
pub mod schema;
mod secret;
pub mod section;
mod show;
#[cfg(test)]
mod tests;
pub(crate) mod value;

pub use environment::{Environment, Flags};
pub use fault::{Fault, Faults, Severity};
pub use reading::Source;
pub use section::event_store::{EventStore, GapProof, Layout};
pub use section::host::{Host, LogFormat};
pub use section::http::Http;
pub use section::leader::{Leader, LeaderDatabase, LeaderScope};
pub use section::locks::{Locks, RegisteredLock};
pub use section::plugins::{Limits, OnChange, Plugins, Watch};
pub use section::projection::{Defaults, OnError, Projection, Retry, StartFrom};
pub use section::read_model::ReadModel;
pub use show::Setting;

use crate::database::session::Database;
use fault::{Place, UNREADABLE};
use reading::Reading;
use secret::Secrets;

/// Configuration of a replica of `projector-host`.
///
/// Durations and sizes are text with units. Relative paths are relative to this file's folder. Unknown keys
/// are errors.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The process itself.
    pub host: Host,
    /// Where events are read, and how.
    pub event_store: EventStore,
    /// Where rows and checkpoints are written.
    pub read_model: ReadModel,
    /// Which replica projects.
    pub leader: Leader,
    /// Where components are found, and what they may use.
    pub plugins: Plugins,
    /// The address of probes, metrics, API and dashboard.
    pub http: Http,
    /// How projections run unless `[[projection]]` says otherwise.
    pub defaults: Defaults,
    /// Settings of single projections. A plugin needs none to run.
    pub projection: Vec<Projection>,
    /// Names of advisory locks in use beside the leader's.
    pub locks: Locks,
    #[serde(skip)]
    secrets: Secrets,
}

/// A configuration, and what is known of where it came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The effective values.
    pub config: Config,
    /// The file, as it was named.
    pub path: PathBuf,
    /// What is probably not meant; errors never stand here.
    pub warnings: Vec<Fault>,
    sources: BTreeMap<String, Source>,
}

/// Everything that holds for one projection.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectionSettings {
    /// Its name.
    pub name: String,
    /// The plugin's file.
    pub component: PathBuf,
    /// The only digest that is accepted, lower-case hexadecimal.
    pub sha256: Option<String>,
    /// JSON text for the plugin's `describe`.
    pub config_json: String,
    /// WASI interfaces beyond the closed deterministic ones.
    pub wasi: Vec<String>,
    /// What happens at an event that cannot be applied.
    pub on_error: OnError,
    /// How steps that may succeed later are tried again.
    pub retry: Retry,
    /// Where it begins when it never ran.
    pub start_from: StartFrom,
    /// What one call of its plugin may use.
    pub limits: Limits,
}

/// Reads a configuration file and everything that overrides it.
///
/// # Errors
/// All faults that were found, warnings among them.
pub fn load(path: &Path, environment: &Environment, flags: &Flags) -> Result<Loaded, Faults> {
    let unreadable = |reason: String, hint: &str| {
        let place = Place::Named(path.display().to_string());
        let message = format!("cannot read the configuration: {reason}");
        Faults(vec![Fault::new(UNREADABLE, place, message).hint(hint)])
    };
    let bytes = disk::read(path, disk::CONFIG_BYTES_MAX).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::NotFound => {
                "name another file with --config, or write a commented one with `projector-host config init`"
            }
            std::io::ErrorKind::IsADirectory => "name the file itself, not its folder",
            _ => "check that the user of this process may read it",
        };
        unreadable(error.to_string(), hint)
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        unreadable(
            format!("line {line} is not UTF-8"),
            "save the file in the encoding UTF-8",
        )
    })?;
    parse(&text, path, environment, flags)
}

/// Reads the text of a configuration file; `path` is where it would stand.
///
/// # Errors
/// All faults that were found, warnings among them.
pub fn parse(
    text: &str,
    path: &Path,
    environment: &Environment,
    flags: &Flags,
) -> Result<Loaded, Faults> {
    let file = path.display().to_string();
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let faults = errors
            .iter()
            .map(|error| reading::syntax(&file, text, error));
        return Err(Faults(faults.collect()));
    }
    let (layers, faults) = environment::layers(environment, flags);
    let mut reading = Reading::new(&file, text, &layers);
    reading.faults = faults;
    let mut config = read(&mut reading, root.get_ref());
    later::check(&mut reading, root.get_ref());
    rules::check(&mut reading, &config);
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    config.complete(folder, environment);
    config.secrets = config.find_secrets(&reading, environment);
    let (errors, warnings): (Vec<Fault>, Vec<Fault>) = reading
        .faults
        .into_iter()
        .partition(|fault| fault.severity == Severity::Error);
    if errors.is_empty() {
        return Ok(Loaded {
            config,
            path: path.to_owned(),
            warnings,
            sources: reading.sources,
        });
    }
    let mut all: Vec<Fault> = errors.into_iter().chain(warnings).collect();
    all.sort_by_key(|fault| match &fault.place {
        Place::Named(_) => (0, 0),
        Place::File(at) => (at.line, at.column),
    });
    Err(Faults(all))
}

fn read<'a>(reading: &mut Reading<'a>, root: &'a DeTable<'a>) -> Config {
    let mut root = reading.root(root);
    let host = Host::read(root.section("host"));
    let event_store = EventStore::read(root.section("event_store"));
    let read_model = ReadModel::read(root.section("read_model"));
    let leader = Leader::read(root.section("leader"));
    let plugins = Plugins::read(root.section("plugins"));
    let http = Http::read(root.section("http"));
    let defaults = Defaults::read(root.section("defaults"));
    let projection = root.each("projection", |table| {
        Projection::read(table, &defaults.retry, &plugins.limits)
    });
    let locks = Locks::read(root.section("locks"));
    root.finish();
    Config {
        host,
        event_store,
        read_model,
        leader,
        plugins,
        http,
        defaults,
        projection,
        locks,
        secrets: Secrets::none(),
    }
}

impl Default for Config {
    /// What an empty file means, without what the machine adds: node, cache folder and secrets.
    fn default() -> Self {
        Self {
            host: Host::default(),
            event_store: EventStore::default(),
            read_model: ReadModel::default(),
            leader: Leader::default(),
            plugins: Plugins::default(),
            http: Http::default(),
            defaults: Defaults::default(),
            projection: Vec::new(),
            locks: Locks::default(),
            secrets: Secrets::none(),
        }
    }
}

impl Config {
    /// The event-store database.
    ///
    /// # Errors
    /// When its URL is missing or malformed.
    pub fn event_store_database(&self) -> Result<Database, Fault> {
        self.database("event store", &self.secrets.event_store)
    }

    /// The read-model database.
    ///
    /// # Errors
    /// When its URL is missing or malformed.
    pub fn read_model_database(&self) -> Result<Database, Fault> {
        self.database("read model", &self.secrets.read_model)
    }

    /// The database in which the leader lock lives.
    ///
    /// # Errors
    /// When its URL is missing or malformed.
    pub fn leader_database(&self) -> Result<Database, Fault> {
        match self.leader.database {
            LeaderDatabase::EventStore => self.event_store_database(),
            LeaderDatabase::ReadModel => self.read_model_database(),
        }
    }

    /// The token that allows changes over HTTP; none means read-only.
    ///
    /// # Errors
    /// When a file is named that cannot be read.
    pub fn admin_token(&self) -> Result<Option<SecretString>, Fault> {
        let token = self.secrets.admin_token.as_ref().map_err(Clone::clone)?;
        Ok(token.as_ref().map(|secret| secret.value.clone()))
    }

    /// What is wrong with the secrets; empty when everything is there that a replica needs.
    #[must_use]
    pub fn secret_faults(&self) -> Vec<Fault> {
        let urls = [&self.secrets.event_store, &self.secrets.read_model];
        urls.into_iter()
            .filter_map(|url| url.as_ref().err())
            .chain(self.secrets.admin_token.as_ref().err())
            .cloned()
            .collect()
    }

    /// Everything that holds for a projection, named in the file or not.
    #[must_use]
    pub fn projection(&self, name: &str) -> ProjectionSettings {
        let own = self.projection.iter().find(|own| own.name == name);
        let defaults = &self.defaults;
        ProjectionSettings {
            name: name.to_owned(),
            component: own
                .and_then(|own| own.component.clone())
                .unwrap_or_else(|| self.plugins.dir.join(format!("{name}.wasm"))),
            sha256: own.and_then(|own| own.sha256.clone()),
            config_json: own.map_or_else(
                || "{}".to_owned(),
                |own| serde_json::Value::Object(own.config.clone()).to_string(),
            ),
            wasi: own.map(|own| own.wasi.clone()).unwrap_or_default(),
            on_error: own
                .and_then(|own| own.on_error)
                .unwrap_or(defaults.on_error),
            retry: own
                .and_then(|own| own.retry.clone())
                .unwrap_or_else(|| defaults.retry.clone()),
            start_from: own
                .and_then(|own| own.start_from)
                .unwrap_or(defaults.start_from),
            limits: own
                .and_then(|own| own.limits.clone())
                .unwrap_or_else(|| self.plugins.limits.clone()),
        }
    }

    fn database(
        &self,
        name: &'static str,
        url: &Result<secret::Secret, Fault>,
    ) -> Result<Database, Fault> {
        let url = url.as_ref().map_err(Clone::clone)?;
        let (group, node) = (self.leader.group.as_str(), self.host.node.as_str());
        Ok(Database::new(name, url.value.clone(), group, node))
    }
}

impl Loaded {
    /// Every effective value with its source, secrets masked.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        show::settings(&self.config, &self.sources)
    }

    /// Where the value of a key comes from.
    #[must_use]
    pub fn source(&self, key: &str) -> Source {
        self.sources.get(key).cloned().unwrap_or(Source::Default)
    }
}
