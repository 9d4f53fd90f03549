//! Every projection that there is for those who wait: recorded ones, those that cannot begin, and those that have not
//! begun. Nothing is left out because it has no row.

use std::collections::BTreeMap;

use sqlx::postgres::PgConnection;

use crate::database::error::Error;
use crate::event_store::event::Position;
use crate::projection::progress::State;
use crate::projection::verdict::{File, Stand};
use crate::read_model::control::{Control, Projection};
use crate::read_model::folders::{self, Word};

/// One projection.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// How it stands.
    pub stand: Stand,
    /// Whether it is recorded.
    pub recorded: bool,
    /// Why it stopped, or cannot begin.
    pub why: Option<String>,
}

/// Reads them from the control tables.
///
/// # Errors
/// When these cannot be read.
pub async fn ask(connection: &mut PgConnection, control: &Control) -> Result<Vec<Member>, Error> {
    let rows = control.list(connection).await?;
    let words = folders::newest(connection, control.schema()).await?;
    Ok(members(&rows, &words))
}

/// What rows and the words of replicas come to together.
#[must_use]
pub fn members(rows: &[Projection], words: &[Word]) -> Vec<Member> {
    let mut all: BTreeMap<String, Member> = BTreeMap::new();
    for row in rows {
        let failure = row.failure.as_ref().map(|failure| failure.message.clone());
        all.insert(
            row.name.clone(),
            Member {
                name: row.name.clone(),
                stand: Stand {
                    state: State::of_word(&row.state),
                    position: row.position,
                    begun: true,
                    file: File::None,
                },
                recorded: true,
                why: failure.or_else(|| row.note.clone()),
            },
        );
    }
    for word in words {
        for (name, digest) in word.projections.as_object().into_iter().flatten() {
            let file = if digest.is_null() {
                File::Broken
            } else {
                File::Good
            };
            // What never ran and cannot be loaded is a file, not a projection yet.
            let member = match file {
                File::Good => all.entry(name.clone()).or_insert_with(|| unbegun(name)),
                _ => match all.get_mut(name) {
                    Some(member) => member,
                    None => continue,
                },
            };
            member.stand.file = member.stand.file.max(file);
        }
        for refused in word.refused.as_array().into_iter().flatten() {
            let Some(unmade) = Unmade::read(refused) else {
                continue;
            };
            let member = all
                .entry(unmade.name.to_owned())
                .or_insert_with(|| unbegun(unmade.name));
            if !member.recorded {
                member.stand.state = Some(unmade.state);
                member.why = Some(unmade.message.to_owned());
            }
        }
    }
    all.into_values().collect()
}

/// A projection whose tables cannot be made, in the words of a replica.
#[derive(Debug, Clone, Copy)]
pub struct Unmade<'a> {
    /// The projection.
    pub name: &'a str,
    /// Why.
    pub message: &'a str,
    /// [`State::Stopped`] when a person has to act, else [`State::Retrying`].
    pub state: State,
}

impl<'a> Unmade<'a> {
    /// Reads one entry of what a replica refuses; none for a file.
    #[must_use]
    pub fn read(refused: &'a serde_json::Value) -> Option<Self> {
        Some(Self {
            name: refused["projection"].as_str()?,
            message: refused["message"].as_str()?,
            // Older replicas told only what a person has to mend.
            state: refused["state"]
                .as_str()
                .and_then(State::of_word)
                .unwrap_or(State::Stopped),
        })
    }
}

fn unbegun(name: &str) -> Member {
    Member {
        name: name.to_owned(),
        stand: Stand {
            state: None,
            position: Position(0),
            begun: false,
            file: File::None,
        },
        recorded: false,
        why: None,
    }
}
