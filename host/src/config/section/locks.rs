//! `[locks]`: names of advisory locks in use beside the leader's.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::reading::Table;

/// Names of advisory locks in use beside the leader's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Locks {
    /// Lock names in use, so that two names with one key are found and `locks list` can say who is who.
    pub registry: BTreeMap<String, RegisteredLock>,
}

/// A lock name in use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RegisteredLock {
    /// The namespace from which its key is derived.
    pub namespace: String,
}

impl Locks {
    pub(in crate::config) fn read(mut table: Table<'_, '_>) -> Self {
        let registry = table.section("registry").named(|_, mut entry| {
            let lock = RegisteredLock {
                namespace: entry.value("namespace", String::new()),
            };
            entry.finish();
            lock
        });
        table.finish();
        Self {
            registry: registry.into_iter().collect(),
        }
    }
}
