//! `[http]`: the address of probes, metrics, API and dashboard.

use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use toml::de::DeValue;

use super::host::not_empty;
use crate::config::fault::MALFORMED;
use crate::config::reading::Table;
use crate::config::value::{self, Problem, Value, variable};

/// The address of probes, metrics, API and dashboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// IP address and port; port 0 takes any free one, and the log says which. Environment:
    /// `PROJECTOR_HTTP_LISTEN`.
    #[serde(serialize_with = "value::text")]
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// Name of the environment variable that holds the token for changes. Without a token the page and the
    /// API are read-only.
    pub admin_token_env: String,
    /// A file that holds the token, instead of `admin_token_env`. Relative to this file's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_token_file: Option<PathBuf>,
}

impl Value for SocketAddr {
    fn read(value: &DeValue<'_>) -> Result<Self, Problem> {
        let text = String::read(value)?;
        text.parse().map_err(|_| {
            Problem::new(MALFORMED, "is no address").hint(
                "write an IP address and a port, such as \"127.0.0.1:7400\", \"[::1]:7400\" or, for all interfaces, \"0.0.0.0:7400\"",
            )
        })
    }
}

impl Default for Http {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7400)),
            admin_token_env: "PROJECTOR_ADMIN_TOKEN".to_owned(),
            admin_token_file: None,
        }
    }
}

impl Http {
    pub(in crate::config) fn read(mut table: Table<'_, '_>) -> Self {
        let default = Self::default();
        let section = Self {
            listen: table.value("listen", default.listen),
            admin_token_env: table.checked("admin_token_env", default.admin_token_env, variable),
            admin_token_file: table
                .optional("admin_token_file", not_empty)
                .map(PathBuf::from),
        };
        table.finish();
        section
    }
}
