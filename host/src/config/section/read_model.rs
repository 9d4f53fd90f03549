//! `[read_model]`: where rows and checkpoints are written.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::host::not_empty;
use crate::config::reading::Table;
use crate::config::value::{self, variable};
use crate::database::identifier::Identifier;

/// Where rows and checkpoints are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReadModel {
    /// Name of the environment variable that holds the URL. It may be another database, on another server.
    pub url_env: String,
    /// A file that holds the URL, instead of `url_env`. Relative to this file's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_file: Option<PathBuf>,
    /// Schema where readers look: views onto the live generation of each table.
    #[serde(serialize_with = "value::text")]
    #[schemars(with = "String")]
    pub schema: Identifier,
    /// Schema of the host's own tables: checkpoints, generations, dead letters, audit.
    #[serde(serialize_with = "value::text")]
    #[schemars(with = "String")]
    pub control_schema: Identifier,
}

impl Default for ReadModel {
    fn default() -> Self {
        Self {
            url_env: "DATABASE_URL".to_owned(),
            url_file: None,
            schema: Identifier::new("read_model").expect("a constant that is a valid name"),
            control_schema: Identifier::new("projector").expect("a constant that is a valid name"),
        }
    }
}

impl ReadModel {
    pub(in crate::config) fn read(mut table: Table<'_, '_>) -> Self {
        let default = Self::default();
        let section = Self {
            url_env: table.checked("url_env", default.url_env, variable),
            url_file: table.optional("url_file", not_empty).map(PathBuf::from),
            schema: table.value("schema", default.schema),
            control_schema: table.value("control_schema", default.control_schema),
        };
        table.finish();
        section
    }
}
