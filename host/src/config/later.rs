//! What the contract promises and this version does not do yet.
//!
//! Promises: such a value is refused by name instead of being ignored. To open one, delete its line.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::fault::{Fault, NOT_YET};
use super::reading::Reading;

/// A key of which some values are not available yet.
#[derive(Debug)]
pub struct Later {
    /// The key, without the numbers of lists.
    pub key: &'static str,
    /// Which of its values.
    pub refused: Refused,
    /// What to write instead.
    pub instead: &'static str,
}

/// Values that are refused.
#[derive(Debug)]
pub enum Refused {
    /// All of them.
    Any,
    /// All but this one.
    AnyBut(&'static str),
    /// A list with anything in it.
    NotEmpty,
}

/// The one table of things to come.
pub const LATER: &[Later] = &[
    Later {
        key: "event_store.layout",
        refused: Refused::AnyBut("projector"),
        instead: "use layout = \"projector\"",
    },
    Later {
        key: "event_store.columns",
        refused: Refused::Any,
        instead: "use layout = \"projector\"",
    },
    Later {
        key: "projection.wasi",
        refused: Refused::NotEmpty,
        instead: "use wasi = []: the closed deterministic interfaces are always there",
    },
];

/// Reports every value that is not available yet.
pub(super) fn check(reading: &mut Reading<'_>, root: &DeTable<'_>) {
    for later in LATER {
        let mut found = Vec::new();
        collect(root, later.key, &mut found);
        for (value, span) in found {
            let place = reading.place(&span);
            // A value that was not even understood is reported as that.
            let understood = reading.faults.iter().all(|fault| fault.place != place);
            if understood && later.refused.covers(value) {
                let message = format!("`{}` {}", later.key, shown(value));
                let message = format!("{} is not available yet", message.trim_end());
                reading
                    .faults
                    .push(Fault::new(NOT_YET, place, message).hint(later.instead));
            }
        }
    }
}

impl Refused {
    fn covers(&self, value: &DeValue<'_>) -> bool {
        match (self, value) {
            (Self::Any, _) => true,
            (Self::AnyBut(word), DeValue::String(text)) => text != word,
            (Self::AnyBut(word), DeValue::Boolean(flag)) => flag.to_string() != *word,
            (Self::NotEmpty, DeValue::Array(items)) => !items.is_empty(),
            // Of another type altogether: reported as malformed where it is read.
            _ => false,
        }
    }
}

fn collect<'v, 'a>(
    table: &'v DeTable<'a>,
    path: &str,
    found: &mut Vec<(&'v DeValue<'a>, Range<usize>)>,
) {
    let (key, rest) = match path.split_once('.') {
        Some((key, rest)) => (key, Some(rest)),
        None => (path, None),
    };
    let Some(value) = table.get(key) else { return };
    match (rest, value.get_ref()) {
        (None, _) => found.push((value.get_ref(), value.span())),
        (Some(rest), DeValue::Table(inner)) => collect(inner, rest, found),
        (Some(rest), DeValue::Array(items)) => {
            for item in items.iter().filter_map(|item| item.get_ref().as_table()) {
                collect(item, rest, found);
            }
        }
        _ => {}
    }
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("= {text:?}"),
        DeValue::Boolean(flag) => format!("= {flag}"),
        DeValue::Array(_) => "with anything in it".to_owned(),
        _ => String::new(),
    }
}
