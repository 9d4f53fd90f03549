//! Tells the other replicas, and people, which plugin files this one has and which it refuses.
//!
//! Promises: nothing waits for it; a database that does not take it is tried again. It says nothing of what runs.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::database::error::Error;
use crate::database::session::{Database, Purpose, bounded};
use crate::read_model::folders::{self, Word};

use super::plugins::LoadedPlugins;

/// How often it is looked whether there is something new to tell. Nothing new is not told.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// How often it is told again, so that it counts.
const REPEAT_INTERVAL: Duration = Duration::from_secs(3_600);

/// Longest wait for the database.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Says what this replica has until shutdown, and takes it back then, or when another folder is its own.
pub(super) async fn tell(
    config: &Config,
    database: &Database,
    plugins: &LoadedPlugins,
    shutdown: &CancellationToken,
) {
    let control = &config.read_model.control_schema;
    let mut changes = plugins.roster().changes();
    let mut told: Option<(Word, tokio::time::Instant)> = None;
    loop {
        changes.mark_unchanged();
        let word = word(config, plugins);
        let known = told
            .as_ref()
            .is_some_and(|(old, at)| *old == word && at.elapsed() < REPEAT_INTERVAL);
        if !known {
            let moved = told.as_ref().map(|(old, _)| old);
            let moved = moved.filter(|old| old.folder != word.folder);
            let telling = async {
                let mut connection = database.connect(&Purpose::Admin).await?;
                folders::tell(&mut connection, control, &word).await?;
                match moved {
                    Some(old) => {
                        folders::forget(&mut connection, control, &old.folder, &old.node).await
                    }
                    None => Ok(()),
                }
            };
            match bounded(database.name, ANSWER_TIMEOUT, telling).await {
                Ok(()) => told = Some((word, tokio::time::Instant::now())),
                Err(error) => {
                    tracing::debug!(%error, "the other replicas were not told which plugin files are here")
                }
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            _ = changes.changed() => {}
            () = tokio::time::sleep(LOOK_INTERVAL) => {}
        }
    }
    if let Some((word, _)) = told {
        let forgetting = async {
            let mut connection = database.connect(&Purpose::Admin).await?;
            folders::forget(&mut connection, control, &word.folder, &word.node).await
        };
        let done: Result<(), Error> = bounded(database.name, ANSWER_TIMEOUT, forgetting).await;
        if let Err(error) = done {
            tracing::debug!(%error, "this replica's word on its plugin files stays for a day");
        }
    }
}

fn word(config: &Config, plugins: &LoadedPlugins) -> Word {
    let mut projections = Map::new();
    let mut refused: Vec<Value> = plugins
        .refused()
        .iter()
        .map(|refused| json!({ "file": refused.file.display().to_string(), "code": refused.code.to_string(), "message": refused.message }))
        .collect();
    for known in plugins.roster().all().iter() {
        match &known.offer {
            Some(offer) => drop(projections.insert(known.name.clone(), json!(offer.plugin.sha256))),
            None if known.broken => drop(projections.insert(known.name.clone(), Value::Null)),
            None => {}
        }
        if let Some(why) = known.progress.refused() {
            refused.push(json!({
                "projection": known.name, "message": why.message, "state": why.state().as_str(),
            }));
        }
    }
    Word {
        folder: plugins.loader().folder().clone(),
        node: config.host.node.clone(),
        projections: Value::Object(projections),
        refused: Value::Array(refused),
    }
}
