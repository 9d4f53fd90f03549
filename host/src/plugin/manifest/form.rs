//! The JSON form of a manifest, as it stands in the `description` column of a generation.
//!
//! Promises: what an older host wrote is read for ever: fields are only added, with a default.

use serde::{Deserialize, Serialize};

use super::{Manifest, Table};
use crate::guest::bindings::Description;
use crate::guest::bindings::typed::exports::projector::projection::manifest as contract;

#[derive(Serialize, Deserialize)]
pub(super) struct Form {
    name: String,
    version: String,
    subscription: SubscriptionForm,
    reads: bool,
    tables: Vec<TableForm>,
}

#[derive(Serialize, Deserialize)]
struct SubscriptionForm {
    types: Vec<String>,
    stream_prefixes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct TableForm {
    name: String,
    columns: Vec<ColumnForm>,
    primary_key: Vec<String>,
    #[serde(default)]
    indexes: Vec<Vec<String>>,
}

#[derive(Serialize, Deserialize)]
struct ColumnForm {
    name: String,
    #[serde(rename = "type")]
    column_type: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    nullable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

impl From<Manifest> for Form {
    fn from(manifest: Manifest) -> Self {
        Self {
            tables: manifest.tables.iter().map(table).collect(),
            name: manifest.name,
            version: manifest.version,
            subscription: SubscriptionForm {
                types: manifest.subscription.types,
                stream_prefixes: manifest.subscription.stream_prefixes,
            },
            reads: manifest.reads,
        }
    }
}

impl TryFrom<Form> for Manifest {
    type Error = String;

    fn try_from(form: Form) -> Result<Self, String> {
        let description = Description {
            name: form.name,
            version: form.version,
            subscription: contract::Subscription {
                types: form.subscription.types,
                stream_prefixes: form.subscription.stream_prefixes,
            },
            reads: form.reads,
            tables: form.tables.into_iter().map(described).collect(),
            options: Vec::new(),
        };
        Self::check(&description).map_err(|faults| {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            faults.join("; ")
        })
    }
}

fn table(table: &Table) -> TableForm {
    let names = |places: &Vec<usize>| -> Vec<String> {
        places
            .iter()
            .map(|at| table.columns[*at].name.to_string())
            .collect()
    };
    TableForm {
        name: table.name.to_string(),
        columns: table
            .columns
            .iter()
            .map(|column| ColumnForm {
                name: column.name.to_string(),
                column_type: column.column_type.sql().to_owned(),
                nullable: column.nullable,
                default: column.default.clone(),
            })
            .collect(),
        primary_key: names(&table.primary_key),
        indexes: table.indexes.iter().map(names).collect(),
    }
}

fn described(form: TableForm) -> contract::Table {
    contract::Table {
        name: form.name,
        columns: form
            .columns
            .into_iter()
            .map(|column| contract::Column {
                name: column.name,
                column_type: column.column_type,
                nullable: column.nullable,
                default_value: column.default,
            })
            .collect(),
        primary_key: form.primary_key,
        indexes: form
            .indexes
            .into_iter()
            .map(|columns| contract::Index { columns })
            .collect(),
    }
}
