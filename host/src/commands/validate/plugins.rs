//! Checks of the plugin files: everything that the host does with them before their first event.

use super::Finding;
use crate::app::plugins::{engine, options};
use crate::config::Config;
use crate::error::Exit;
use crate::plugin::{Loaded, load_all};
use crate::telemetry::escape::escaped;

/// What is wrong with the plugins. Blocks: compiling takes a while.
///
/// Compiled code is not kept, since `validate` changes nothing.
pub(super) fn check(config: &Config) -> (Option<Loaded>, Vec<Finding>) {
    let engine = match engine(config, false) {
        Ok(engine) => engine,
        Err(failure) => {
            let finding = Finding::error(failure.exit, "engine", failure.message);
            return (None, vec![finding]);
        }
    };
    let mut options = options(config);
    options.cache_dir = None;
    let loaded = load_all(&engine, &options);
    let mut findings: Vec<Finding> = loaded
        .refused
        .iter()
        .map(|refused| {
            let file = escaped(&refused.file.display().to_string()).into_owned();
            // The file stands in the place already.
            let message = refused.message.trim_start_matches(&format!("{file}: "));
            Finding::error(Exit::Config, file.as_str(), message).code(refused.code)
        })
        .collect();
    if findings.is_empty() && loaded.plugins.is_empty() {
        let folder = config.plugins.dir.display().to_string();
        findings.push(
            Finding::warning(folder, "there is no plugin in the folder")
                .hint("put the *.wasm of a projection there, or set `[plugins] dir`"),
        );
    }
    (Some(loaded), findings)
}
