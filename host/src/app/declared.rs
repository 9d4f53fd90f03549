//! Whether projections would go on with what their plugins declare under a changed configuration.
//!
//! Promises: only a plugin that fits its rows now and would not any more is an objection, so a change that mends
//! something is never kept out. The database is asked only when a plugin declares other things than before.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{Config, OnChange};
use crate::database::session::{Purpose, bounded};
use crate::error::Code;
use crate::plugin::manifest::{Difference, Manifest};
use crate::plugin::{Loaded, Plugin};
use crate::read_model::schema;

/// Longest wait for the database.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// A plugin before and after.
type Pair = (Arc<Plugin>, Arc<Plugin>);

/// What stands against the change. Blocks; on a thread of the runtime that may.
pub(super) fn objections(config: &Config, before: &Loaded, after: &Loaded) -> Vec<String> {
    if config.plugins.on_change == OnChange::Rebuild {
        return Vec::new();
    }
    let changed = changed(before, after);
    if changed.is_empty() {
        return Vec::new();
    }
    let asking = unfit(config, &changed);
    match tokio::runtime::Handle::current().block_on(asking) {
        Ok(unfit) => unfit,
        Err(reason) => vec![format!(
            "plugins declare other things with it, and whether their rows fit is not known: {reason}; send SIGHUP to \
             try again"
        )],
    }
}

/// The same file, declaring what rows of before cannot go on with.
fn changed(before: &Loaded, after: &Loaded) -> Vec<Pair> {
    let pair = |new: &Arc<Plugin>| {
        let old = before.plugin(&new.manifest.name)?;
        let changed = old.sha256 == new.sha256 && !goes_on(&old.manifest, new);
        changed.then(|| (old.clone(), new.clone()))
    };
    after.plugins.iter().filter_map(pair).collect()
}

async fn unfit(config: &Config, changed: &[Pair]) -> Result<Vec<String>, String> {
    let database = config
        .read_model_database()
        .map_err(|error| error.to_string())?;
    let name = database.name;
    let connecting = database.connect(&Purpose::Admin);
    let mut connection = bounded(name, ANSWER_TIMEOUT, connecting)
        .await
        .map_err(|error| error.to_string())?;
    let control = &config.read_model.control_schema;
    let mut unfit = Vec::new();
    for (old, new) in changed {
        let asking = schema::live(&mut connection, control, &new.manifest.name);
        let asked = tokio::time::timeout(ANSWER_TIMEOUT, asking).await;
        let live = asked
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
        let rows = live
            .filter(|live| live.sha256 == new.sha256)
            .and_then(|live| serde_json::from_value::<Manifest>(live.description).ok());
        unfit.extend(rows.and_then(|rows| objection(&rows, old, new)));
    }
    Ok(unfit)
}

fn objection(rows: &Manifest, old: &Plugin, new: &Plugin) -> Option<String> {
    if !goes_on(rows, old) || goes_on(rows, new) {
        return None;
    }
    let difference = Difference::between(rows, &new.manifest);
    Some(format!(
        "{}: with it the plugin of {} declares other things than the rows have: {}",
        Code(802),
        new.manifest.name,
        difference.rebuild.join("; ")
    ))
}

fn goes_on(rows: &Manifest, plugin: &Plugin) -> bool {
    Difference::between(rows, &plugin.manifest).goes_on()
}
