//! The projection's `config` table from the host's configuration.

use serde::de::DeserializeOwned;

/// What the host's configuration says under `config` of this projection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    text: String,
}

impl Config {
    /// A configuration from its JSON text; empty text means an empty table.
    #[must_use]
    pub fn from_json(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// The JSON text; `{}` when nothing is configured.
    #[must_use]
    pub fn json(&self) -> &str {
        match self.text.trim() {
            "" | "null" => "{}",
            text => text,
        }
    }

    /// The settings as a type of the plugin's own. Put `#[serde(deny_unknown_fields, default)]` on it, so that
    /// a misspelt setting is refused by name.
    ///
    /// # Errors
    ///
    /// A text for people that names the setting.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        let mut json = serde_json::Deserializer::from_str(self.json());
        serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            let reason = error.into_inner();
            if path == "." {
                format!("config: {reason}")
            } else {
                format!("config `{path}`: {reason}")
            }
        })
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::from_json("{}")
    }
}

#[cfg(test)]
mod tests {
    use super::Config;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Settings {
        change_logs: bool,
    }

    impl Default for Settings {
        fn default() -> Self {
            Self { change_logs: true }
        }
    }

    fn check(text: &str, expected: Result<bool, &str>) {
        match (Config::from_json(text).read::<Settings>(), expected) {
            (Ok(settings), Ok(expected)) => assert_eq!(settings.change_logs, expected, "{text}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{text}: {message}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn settings_are_read_and_faults_name_the_setting() {
        check("{}", Ok(true));
        check("", Ok(true));
        check(r#"{"change_logs":false}"#, Ok(false));
        check(r#"{"change_log":false}"#, Err("change_log"));
        check(r#"{"change_logs":"no"}"#, Err("`change_logs`"));
        check("[", Err("config"));
    }
}
