//! The shape of a dead letter in JSON.

use serde::Serialize;

use crate::read_model::dead_letter::Described;

/// One dead letter.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Letter {
    id: i64,
    projection: String,
    generation: i32,
    position: i64,
    stream: String,
    event_id: String,
    event_type: String,
    category: String,
    message: String,
    table: Option<String>,
    column: Option<String>,
    parked: bool,
    attempts: i32,
    created_at: Option<String>,
    failed_at: Option<String>,
    retry: Option<Retry>,
    resolved: Option<Resolved>,
    first_of_stream: bool,
    behind: i64,
}

#[derive(Debug, Clone, Serialize)]
struct Retry {
    at: Option<String>,
    attempts: i32,
    following: bool,
}

#[derive(Debug, Clone, Serialize)]
struct Resolved {
    at: Option<String>,
    how: String,
}

impl From<&Described> for Letter {
    fn from(letter: &Described) -> Self {
        Self {
            id: letter.id,
            projection: letter.projection.clone(),
            generation: letter.generation,
            position: letter.position,
            stream: letter.stream.clone(),
            event_id: letter.event_id.clone(),
            event_type: letter.event_type.clone(),
            category: letter.category.clone(),
            message: letter.message.clone(),
            table: letter.table.clone(),
            column: letter.column.clone(),
            parked: letter.parked,
            attempts: letter.attempts,
            created_at: time(letter.created_at),
            failed_at: time(letter.failed_at),
            retry: letter.retry_at.map(|at| Retry {
                at: time(at),
                attempts: letter.retry_attempts,
                following: letter.retry_following,
            }),
            resolved: letter.resolved.as_ref().map(|(at, how)| Resolved {
                at: time(*at),
                how: how.clone(),
            }),
            first_of_stream: letter.first == Some(letter.id),
            behind: letter.behind,
        }
    }
}

pub(super) fn letters(letters: &[Described]) -> Vec<Letter> {
    letters.iter().map(Letter::from).collect()
}

/// The numbers, for a sentence.
pub(super) fn numbers(letters: &[Described]) -> String {
    let numbers: Vec<String> = letters.iter().map(|letter| letter.id.to_string()).collect();
    numbers.join(", ")
}

pub(super) fn time(micros: i64) -> Option<String> {
    jiff::Timestamp::from_microsecond(micros)
        .ok()
        .map(|time| time.to_string())
}
