//! The effective values and where each comes from, secrets masked.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Config;
use super::reading::Source;
use super::secret::shown_url;

/// One effective value.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its key, such as `event_store.poll_interval` or `projection[0].name`.
    pub key: String,
    /// Its value, as the file would have it.
    pub value: Value,
    /// Where it comes from.
    pub source: Source,
}

/// Every effective value, in the order of the file's sections.
pub(super) fn settings(config: &Config, sources: &BTreeMap<String, Source>) -> Vec<Setting> {
    let mut all = Vec::new();
    let tree = serde_json::to_value(config).unwrap_or(Value::Null);
    let Value::Object(sections) = tree else {
        return all;
    };
    for (name, section) in sections {
        flatten(name.clone(), section, sources, &mut all);
        match name.as_str() {
            "event_store" => all.push(url("event_store.url", &config.secrets.event_store)),
            "read_model" => all.push(url("read_model.url", &config.secrets.read_model)),
            "http" => all.push(token(config)),
            _ => {}
        }
    }
    all
}

fn flatten(key: String, value: Value, sources: &BTreeMap<String, Source>, all: &mut Vec<Setting>) {
    match value {
        // What a plugin is handed is its own business: shown as it is.
        Value::Object(entries) if !key.ends_with("].config") => {
            let whole = key == "leader.key";
            if whole {
                all.push(setting(key, Value::Object(entries), sources));
                return;
            }
            for (name, value) in entries {
                flatten(format!("{key}.{name}"), value, sources, all);
            }
        }
        Value::Array(items) if key == "projection" => {
            for (index, item) in items.into_iter().enumerate() {
                flatten(format!("{key}[{index}]"), item, sources, all);
            }
        }
        value => all.push(setting(key, value, sources)),
    }
}

fn setting(key: String, value: Value, sources: &BTreeMap<String, Source>) -> Setting {
    let source = sources.get(&key).cloned().unwrap_or(Source::Default);
    Setting { key, value, source }
}

fn url(key: &str, secret: &Result<super::secret::Secret, super::fault::Fault>) -> Setting {
    let (value, source) = match secret {
        Ok(secret) => (Value::from(shown_url(secret)), secret.source.clone()),
        Err(_) => (Value::Null, Source::Default),
    };
    Setting {
        key: key.to_owned(),
        value,
        source,
    }
}

fn token(config: &Config) -> Setting {
    let (value, source) = match &config.secrets.admin_token {
        Ok(Some(secret)) => (Value::from("***"), secret.source.clone()),
        _ => (Value::Null, Source::Default),
    };
    Setting {
        key: "http.admin_token".to_owned(),
        value,
        source,
    }
}
