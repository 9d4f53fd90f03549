//! Objects whose members are columns.

use std::borrow::Cow;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Budget, value};
use crate::guest::bindings::Cell;

/// Members of an object in the order of the text, values unparsed.
pub(super) struct Members<'b> {
    budget: &'b mut Budget,
}

/// A name and the text of its value.
pub(super) type Member<'a> = (Cow<'a, str>, &'a RawValue);

impl Members<'_> {
    /// Reads an object, and pays for each member before it is kept.
    pub(super) fn read<'a>(
        raw: &'a RawValue,
        budget: &mut Budget,
    ) -> Result<Vec<Member<'a>>, String> {
        serde_json::Deserializer::from_str(raw.get())
            .deserialize_map(Members { budget })
            .map_err(|error| error.to_string())
    }
}

/// Reads an object of columns. A column that stands twice is an error, since its meaning is open.
pub(super) fn read(raw: &RawValue, what: &str, budget: &mut Budget) -> Result<Vec<Cell>, String> {
    let members = Members::read(raw, budget).map_err(|error| format!("`{what}`: {error}"))?;
    let mut cells: Vec<Cell> = Vec::with_capacity(members.len());
    let mut seen = std::collections::HashSet::with_capacity(members.len());
    for (column, raw) in &members {
        if !seen.insert(column.as_ref()) {
            return Err(format!("`{what}` names the column `{column}` twice"));
        }
        budget.take(size_of::<Cell>())?;
        let value =
            value::read(raw, budget).map_err(|error| format!("`{what}.{column}`: {error}"))?;
        cells.push(Cell {
            column: column.clone().into_owned(),
            value,
        });
    }
    Ok(cells)
}

#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            self.budget
                .take(size_of::<Member<'_>>() + name.len())
                .map_err(serde::de::Error::custom)?;
            members.push((name, map.next_value()?));
        }
        Ok(members)
    }
}
