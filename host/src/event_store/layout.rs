//! Where the columns of an event stand: one place to add the layout of another store.

use crate::database::identifier::Identifier;

/// A store's tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// This project's own: `<schema>.events`.
    Projector {
        /// Its schema.
        schema: Identifier,
    },
}

impl Layout {
    /// The table, ready for SQL.
    #[must_use]
    pub fn table(&self) -> String {
        match self {
            Self::Projector { schema } => format!("{}.events", schema.quoted()),
        }
    }

    /// The channel on which new events are announced.
    #[must_use]
    pub fn channel(&self) -> String {
        match self {
            Self::Projector { schema } => {
                let mut channel = format!("projector_events_{schema}");
                channel.truncate(crate::database::identifier::IDENTIFIER_BYTES_MAX);
                channel
            }
        }
    }

    /// Puts the layout's names into a template: `{table}`.
    #[must_use]
    pub fn render(&self, template: &str) -> String {
        template.replace("{table}", &self.table())
    }
}
