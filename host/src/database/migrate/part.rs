//! The migrations that the host knows: which tables they make, their text, and where it goes.

use sha2::{Digest as _, Sha256};

use crate::database::identifier::Identifier;
use crate::database::template::render;

/// A set of tables that is migrated on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The table of events, in `[event_store] schema`.
    EventStore,
    /// The control tables, in `[read_model] control_schema`.
    ReadModel,
}

/// One numbered step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// From 1, without holes.
    pub version: i32,
    /// What it creates.
    pub name: &'static str,
    /// SQL with placeholders.
    pub template: &'static str,
}

/// A part and the schema that it lives in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What is migrated.
    pub part: Part,
    /// Where.
    pub schema: Identifier,
}

impl Part {
    /// The word in the `part` column and in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EventStore => "event_store",
            Self::ReadModel => "read_model",
        }
    }

    /// All steps, in order.
    #[must_use]
    pub const fn migrations(self) -> &'static [Migration] {
        match self {
            Self::EventStore => &[Migration {
                version: 1,
                name: "events",
                template: include_str!("../../../../migrations/event_store/0001_events.sql"),
            }],
            Self::ReadModel => &[
                Migration {
                    version: 1,
                    name: "control",
                    template: include_str!("../../../../migrations/read_model/0001_control.sql"),
                },
                Migration {
                    version: 2,
                    name: "dead_letters",
                    template: include_str!(
                        "../../../../migrations/read_model/0002_dead_letters.sql"
                    ),
                },
                Migration {
                    version: 3,
                    name: "plugins",
                    template: include_str!("../../../../migrations/read_model/0003_plugins.sql"),
                },
                Migration {
                    version: 4,
                    name: "anchors",
                    template: include_str!("../../../../migrations/read_model/0004_anchors.sql"),
                },
            ],
        }
    }

    const fn placeholder(self) -> &'static str {
        match self {
            Self::EventStore => "event_store",
            Self::ReadModel => "control",
        }
    }
}

impl Migration {
    /// SHA-256 of the template, so that it does not depend on the schema's name.
    #[must_use]
    pub fn checksum(&self) -> String {
        Sha256::digest(self.template.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// The SQL for one schema.
    #[must_use]
    pub fn render(&self, target: &Target) -> String {
        render(
            self.template,
            &[(target.part.placeholder(), &target.schema)],
        )
    }
}

impl Target {
    /// The event store's tables in this schema.
    #[must_use]
    pub const fn event_store(schema: Identifier) -> Self {
        Self {
            part: Part::EventStore,
            schema,
        }
    }

    /// The control tables in this schema.
    #[must_use]
    pub const fn read_model(control_schema: Identifier) -> Self {
        Self {
            part: Part::ReadModel,
            schema: control_schema,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_count_from_one_and_every_placeholder_is_filled() {
        for part in [Part::EventStore, Part::ReadModel] {
            let target = Target {
                part,
                schema: Identifier::new("some_schema").expect("the name is fine"),
            };
            for (at, migration) in part.migrations().iter().enumerate() {
                assert_eq!(usize::try_from(migration.version), Ok(at + 1));
                let text = migration.render(&target);
                assert!(text.contains("\"some_schema\"."), "{}", migration.name);
                assert!(!text.contains("{event_store}.") && !text.contains("{control}."));
            }
        }
    }
}
