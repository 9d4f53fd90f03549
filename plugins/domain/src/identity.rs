//! The tenant and the identifier of an event, in either shape.

use projector_sdk::{Failure, Key, Uuid};
use serde_json::value::RawValue;

/// Which row an event is about: the same identifier under two merchants is two rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The tenant.
    pub merchant: Uuid,
    /// The order or the service request.
    pub uuid: Uuid,
}

impl Identity {
    /// The key of this row in a table keyed by the merchant and this column.
    pub fn key(&self, table: &'static str, column: &'static str) -> Key {
        Key::new(table)
            .part("merchant_id", self.merchant)
            .part(column, self.uuid)
    }
}

/// The identity from the fields of a payload. `merchant_id` wins over `tenant_schema`, whose value then does not
/// matter.
///
/// # Errors
///
/// A rejection that names the field.
pub fn identity(
    merchant_id: Option<Uuid>,
    tenant_schema: Option<&RawValue>,
    uuid: (&str, Option<Uuid>),
) -> Result<Identity, Failure> {
    let merchant = match (merchant_id, tenant_schema) {
        (Some(merchant), _) => merchant,
        (None, Some(schema)) => merchant_of(schema)?,
        (None, None) => return Err(Failure::missing_field("merchant_id")),
    };
    let (name, uuid) = uuid;
    let uuid = uuid.ok_or_else(|| Failure::missing_field(name))?;
    Ok(Identity { merchant, uuid })
}

/// As [`identity`], where an older field may carry the identifier; the newer one wins.
///
/// # Errors
///
/// As [`identity`].
pub fn identity_or_old(
    merchant_id: Option<Uuid>,
    tenant_schema: Option<&RawValue>,
    uuid: (&str, Option<Uuid>),
    old: (&str, Option<&RawValue>),
) -> Result<Identity, Failure> {
    let found = match (uuid.1, old) {
        (None, (name, Some(json))) => {
            let text = text(name, json)?;
            let uuid = Uuid::parse(&text)
                .ok_or_else(|| Failure::invalid_field(name, format_args!("{text:?} is no UUID")))?;
            Some(uuid)
        }
        (newer, _) => newer,
    };
    identity(merchant_id, tenant_schema, (uuid.0, found))
}

/// `tenant_schema` is a prefix, `_` and the merchant's UUID without dashes.
fn merchant_of(schema: &RawValue) -> Result<Uuid, Failure> {
    let text = text("tenant_schema", schema)?;
    text.len()
        .checked_sub(32)
        .and_then(|start| text.get(start..))
        .and_then(Uuid::parse_simple)
        .ok_or_else(|| {
            Failure::invalid_field(
                "tenant_schema",
                format_args!("{text:?} does not end in the 32 hex digits of a merchant"),
            )
        })
}

fn text(name: &str, json: &RawValue) -> Result<String, Failure> {
    serde_json::from_str(json.get()).map_err(|error| Failure::invalid_field(name, error))
}
