//! What the file leaves open: the node's name, whole paths, the cache folder, the secrets.

use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::reading::Reading;
use super::secret::{self, Lookup, Secrets};
use super::{Config, section};

impl Config {
    /// Adds what depends on the machine, and makes paths absolute.
    pub(super) fn complete(&mut self, folder: &Path, environment: &Environment) {
        if self.host.node.is_empty() {
            let host = gethostname::gethostname().to_string_lossy().into_owned();
            self.host.node = section::host::default_node(&host, std::process::id());
        }
        self.host.cache_dir = match self.host.cache_dir.take() {
            Some(dir) => Some(folder.join(dir)),
            None => default_cache_dir(environment),
        };
        self.plugins.dir = folder.join(&self.plugins.dir);
        for path in [
            &mut self.event_store.url_file,
            &mut self.read_model.url_file,
            &mut self.http.admin_token_file,
        ] {
            *path = path.take().map(|path| folder.join(path));
        }
        for projection in &mut self.projection {
            projection.component = projection.component.take().map(|path| {
                let bare = path.components().count() == 1;
                if bare {
                    self.plugins.dir.join(path)
                } else {
                    folder.join(path)
                }
            });
        }
    }

    pub(super) fn find_secrets(&self, reading: &Reading<'_>, environment: &Environment) -> Secrets {
        let url = |what, env_key, env, file_key, file, fallback| {
            let lookup = Lookup {
                what,
                env_key,
                env,
                file_key,
                file,
                fallback,
            };
            secret::find_url(reading, environment, &lookup)
        };
        let (events, rows, http) = (&self.event_store, &self.read_model, &self.http);
        Secrets {
            event_store: url(
                "event store",
                "event_store.url_env",
                &events.url_env,
                "event_store.url_file",
                events.url_file.as_deref(),
                Some("DATABASE_URL"),
            ),
            read_model: url(
                "read model",
                "read_model.url_env",
                &rows.url_env,
                "read_model.url_file",
                rows.url_file.as_deref(),
                None,
            ),
            admin_token: secret::find(
                reading,
                environment,
                &Lookup {
                    what: "admin token",
                    env_key: "http.admin_token_env",
                    env: &http.admin_token_env,
                    file_key: "http.admin_token_file",
                    file: http.admin_token_file.as_deref(),
                    fallback: None,
                },
            ),
        }
    }
}

/// systemd's cache folder of the unit, else the user's.
///
/// There is none without either: a folder that others can write to is no place for code that will be run.
fn default_cache_dir(environment: &Environment) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(environment.get_os(name)?);
        path.is_absolute().then_some(path)
    };
    // Several folders of a unit stand in one variable, colons between them.
    let unit = absolute("CACHE_DIRECTORY").map(|path| {
        let text = path.to_string_lossy().into_owned();
        PathBuf::from(text.split(':').next().unwrap_or_default())
    });
    unit.or_else(|| absolute("XDG_CACHE_HOME").map(|path| path.join("projector-host")))
        .or_else(|| absolute("HOME").map(|path| path.join(".cache/projector-host")))
}
