//! How a private server is set up.

use std::path::PathBuf;

use crate::installation::Installation;

/// Settings of a [`Server`](crate::Server). The default is fast and forgets everything in a power cut.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    pub(super) installation: Option<Installation>,
    pub(super) durable: bool,
    pub(super) settings: Vec<(String, String)>,
    pub(super) parent: Option<PathBuf>,
    pub(super) trusted: Option<String>,
}

impl ServerOptions {
    /// Runs on these programs instead of those that [`Installation::find`] gives.
    #[must_use]
    pub fn installation(mut self, installation: Installation) -> Self {
        self.installation = Some(installation);
        self
    }

    /// Keeps `fsync` and full page writes on, as in production: for measurements and for the demo.
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Keeps its files below this folder: one that is small, for example.
    #[must_use]
    pub fn folder(mut self, parent: impl Into<PathBuf>) -> Self {
        self.parent = Some(parent.into());
        self
    }

    /// Lets everybody in who connects from this network (such as `10.0.0.0/30`), beside this machine itself.
    #[must_use]
    pub fn trust(mut self, network: impl Into<String>) -> Self {
        self.trusted = Some(network.into());
        self
    }

    /// Any setting of `postgresql.conf`; goes before the ones below.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// All settings as `name=value`; of two with the same name the server takes the last.
    pub(super) fn arguments(&self) -> Vec<String> {
        let durable = if self.durable { "on" } else { "off" };
        let ours = [
            ("listen_addresses", "127.0.0.1"),
            ("fsync", durable),
            ("full_page_writes", durable),
            ("max_connections", "200"),
            ("max_prepared_transactions", "20"),
            ("shared_buffers", "64MB"),
            ("logging_collector", "off"),
            ("log_line_prefix", "%m [%p] %a "),
            ("timezone", "UTC"),
            ("log_timezone", "UTC"),
        ];
        let ours = ours
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"));
        ours.chain(
            self.settings
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        )
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_of_the_user_comes_last_and_so_wins() {
        let options = ServerOptions::default().setting("max_connections", "7");
        assert_eq!(
            options.arguments().last().map(String::as_str),
            Some("max_connections=7")
        );
        assert!(options.arguments().contains(&"fsync=off".to_owned()));
        assert!(
            ServerOptions::default()
                .durable()
                .arguments()
                .contains(&"fsync=on".to_owned())
        );
    }
}
