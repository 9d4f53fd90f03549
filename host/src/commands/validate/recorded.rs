//! Checks of the plugin files against what is recorded: whether each projection would go on with its file.

use super::Finding;
use crate::config::{Config, OnChange};
use crate::database::error::Error as DatabaseError;
use crate::database::migrate::{self, Target};
use crate::database::session::Purpose;
use crate::error::Code;
use crate::plugin::Loaded;
use crate::plugin::manifest::{Difference, Manifest};
use crate::read_model::components;
use crate::read_model::control::Control;
use crate::read_model::schema;
use crate::telemetry::escape::escaped;

/// What would happen instead of going on. A database that cannot be asked is left to its own check.
pub(super) async fn check(config: &Config, loaded: &Loaded) -> Vec<Finding> {
    ask(config, loaded).await.unwrap_or_default()
}

async fn ask(config: &Config, loaded: &Loaded) -> Result<Vec<Finding>, DatabaseError> {
    let Ok(database) = config.read_model_database() else {
        return Ok(Vec::new());
    };
    let control = &config.read_model.control_schema;
    let mut connection = database.connect(&Purpose::Admin).await?;
    let target = Target::read_model(control.clone());
    if migrate::check(&mut connection, &target).await.is_err() {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    for row in Control::new(control.clone()).list(&mut connection).await? {
        let place = format!("projection {}", row.name);
        let recorded = format!("{} (version {})", short(&row.sha256), row.plugin_version);
        let kept = components::get(&mut connection, control, &row.sha256)
            .await?
            .is_some();
        let Some(plugin) = loaded.plugin(&row.name) else {
            let message = format!(
                "there is no plugin file for it that can be used here; its rows were made by {recorded}"
            );
            let hint = if kept {
                "it goes on with the kept plugin while another replica has a file for it, else its state is `no-plugin`"
            } else {
                "put the file back"
            };
            findings.push(Finding::warning(place, message).code(Code(822)).hint(hint));
            continue;
        };
        if plugin.sha256 == row.sha256 {
            continue;
        }
        let generation = schema::live(&mut connection, control, &row.name)
            .await
            .ok()
            .flatten();
        let declared =
            generation.and_then(|one| serde_json::from_value::<Manifest>(one.description).ok());
        let unfit =
            declared.map(|declared| Difference::between(&declared, &plugin.manifest).rebuild);
        let unfit = unfit.unwrap_or_default();
        let message = format!(
            "{} has the digest {} (version {}), but its rows were made by {recorded}",
            escaped(&plugin.file.display().to_string()),
            short(&plugin.sha256),
            plugin.manifest.version
        );
        let hint = match (config.plugins.on_change, unfit.is_empty()) {
            (OnChange::Rebuild, _) => {
                "with `on_change = \"rebuild\"` its tables are emptied and it begins anew"
                    .to_owned()
            }
            (OnChange::Continue, true) => {
                "with `on_change = \"continue\"` it goes on with the file".to_owned()
            }
            (_, false) => format!("it cannot go on with these rows: {}", unfit.join("; ")),
            (OnChange::Refuse, true) if kept => format!(
                "the kept plugin goes on; `projector-host resume {} --accept-plugin` takes the file",
                row.name
            ),
            (OnChange::Refuse, true) => format!(
                "it stops until `projector-host resume {} --accept-plugin`",
                row.name
            ),
        };
        findings.push(Finding::warning(place, message).code(Code(802)).hint(hint));
    }
    Ok(findings)
}

fn short(sha256: &str) -> &str {
    sha256.get(..12).unwrap_or(sha256)
}
