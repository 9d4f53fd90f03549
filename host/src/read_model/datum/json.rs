//! Whether a JSON text can stand in a jsonb column.

use serde::de::IgnoredAny;

use super::text::shown;
use crate::database::jsonb;

pub(super) fn storable(text: &str) -> Result<(), String> {
    // Looked at first: it bounds the depth for every reader.
    if let Some(fault) = jsonb::fault(text) {
        return Err(format!("the JSON text {fault}"));
    }
    serde_json::from_str::<IgnoredAny>(text)
        .map(drop)
        .map_err(|error| format!("the text {} is not JSON: {error}", shown(text)))
}
