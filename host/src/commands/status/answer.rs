//! The shape of `status -o json`, and the same as a table for people.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::app::caught_up::members::{Member, Unmade};
use crate::event_store::event::Position;
use crate::leadership::Leader;
use crate::projection::verdict::{Verdict, lag};
use crate::read_model::control::{Failure, Projection, Source};
use crate::read_model::dead_letter::Count;
use crate::read_model::folders::Word;

/// Headings of the table.
const COLUMNS: [&str; 8] = [
    "PROJECTION",
    "STATE",
    "POSITION",
    "HEAD",
    "LAG",
    "LAG TIME",
    "GEN",
    "PLUGIN",
];

/// Who leads: everything, or each projection.
#[derive(Debug, Default)]
pub(super) struct Leaders {
    pub(super) of_all: Option<Leader>,
    pub(super) of_each: BTreeMap<String, Option<Leader>>,
}

/// Everything that `status` tells.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// Who leads, if anybody does. Nobody leads all when each projection has a leader of its own.
    pub leader: Option<Leader>,
    /// By name.
    pub projections: Vec<ProjectionStatus>,
    /// The plugin folders of the replicas.
    pub folders: Vec<FolderStatus>,
}

/// The plugin folder of a replica.
#[derive(Debug, Clone, Serialize)]
pub struct FolderStatus {
    /// The replica.
    pub node: String,
    /// Its host.
    pub host: String,
    /// The folder.
    pub dir: String,
    /// Digests by projection, null for a file that cannot be used.
    pub projections: Value,
    /// Files that are refused and projections that cannot begin, with the reason.
    pub refused: Value,
}

/// One projection.
#[derive(Debug, Clone, Serialize)]
pub struct ProjectionStatus {
    /// Its name.
    pub name: String,
    /// State word.
    pub state: String,
    /// The live generation.
    pub generation: i32,
    /// Checkpoint.
    pub position: i64,
    /// Highest visible position of the store.
    pub head: i64,
    /// Whether it is done with everything up to the head, as `wait` would say.
    pub caught_up: bool,
    /// Whether anybody leads it; if not, the state is what the last leader wrote.
    pub led: bool,
    /// head − position, 0 when the store went back behind the position.
    pub lag_events: i64,
    /// Age of the first event after the position, by the store's clock; null when that event's time tells no age.
    pub lag_seconds: Option<f64>,
    /// What fills it.
    pub plugin: PluginStatus,
    /// Why it stopped.
    pub failure: Option<FailureStatus>,
    /// What it waits for.
    pub held: Option<HeldStatus>,
    /// Why it was paused, if somebody said.
    pub paused_reason: Option<String>,
    /// Dead letters that nobody has resolved.
    pub dead_letters: i64,
    /// Streams that wait behind one of them.
    pub parked_streams: i64,
    /// Age of the oldest dead letter; none without one.
    pub dead_letter_oldest_seconds: Option<i64>,
    /// Who leads it; only when each projection has a leader of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<Option<Leader>>,
}

/// What fills a projection.
#[derive(Debug, Clone, Serialize)]
pub struct PluginStatus {
    /// Its own version.
    pub version: String,
    /// Digest of its file.
    pub sha256: String,
    /// Why this one runs although the leader's folder has another one, or why none runs.
    pub note: Option<String>,
}

/// Why a projection stopped.
#[derive(Debug, Clone, Serialize)]
pub struct FailureStatus {
    /// A word from a closed set.
    pub category: String,
    /// The event's position.
    pub position: Option<i64>,
    /// The event's type.
    pub event_type: Option<String>,
    /// What happened.
    pub message: String,
    /// When.
    pub at: Option<String>,
}

/// A gap that a writer may still fill.
#[derive(Debug, Clone, Serialize)]
pub struct HeldStatus {
    /// The first missing position.
    pub position: i64,
    /// Since when.
    pub since: Option<String>,
    /// Who may still fill it.
    pub waiting_for: Value,
}

/// What was asked of both databases.
pub(super) struct Asked<'a> {
    pub(super) source: Option<&'a Source>,
    pub(super) head: Position,
    /// Everybody that somebody may wait for.
    pub(super) members: &'a [Member],
    /// How old the first event is that each of them did not see.
    pub(super) lags: &'a [Option<f64>],
    pub(super) letters: &'a [Count],
}

impl Asked<'_> {
    /// Whether one is caught up, how many events it is behind, and how long.
    fn lag(&self, name: &str, position: Position) -> (bool, i64, Option<f64>) {
        let mut members = self.members.iter().zip(self.lags);
        let found = members.find(|(member, _)| member.name == name);
        let done = found.is_some_and(|(one, _)| one.stand.verdict(self.head) == Verdict::Done);
        let seconds = found.and_then(|(_, seconds)| *seconds);
        let events = lag(position, self.head);
        // An event that came between the two questions is not counted in one and aged in the other.
        let seconds = if events == 0 { Some(0.0) } else { seconds };
        (done, events, seconds)
    }
}

impl Status {
    pub(super) fn new(
        mut leaders: Leaders,
        projections: Vec<Projection>,
        asked: Asked<'_>,
        folders: Vec<Word>,
    ) -> Self {
        let (source, head, letters) = (asked.source, asked.head, asked.letters);
        let projections = projections.into_iter().map(|projection| {
            let (caught_up, lag_events, lag_seconds) =
                asked.lag(&projection.name, projection.position);
            let own = leaders.of_each.remove(&projection.name);
            let held = source
                .filter(|_| projection.state == "held")
                .and_then(|source| source.held.as_ref());
            let letters = letters.iter().find(|count| {
                count.projection == projection.name && count.generation == projection.generation
            });
            ProjectionStatus {
                paused_reason: projection.paused_reason,
                dead_letters: letters.map_or(0, |count| count.open),
                parked_streams: letters.map_or(0, |count| count.parked_streams),
                dead_letter_oldest_seconds: letters.map(|count| count.oldest_seconds),
                head: head.0,
                caught_up,
                led: leaders.of_all.is_some() || own.as_ref().is_some_and(Option::is_some),
                lag_events,
                lag_seconds,
                position: projection.position.0,
                generation: projection.generation,
                plugin: PluginStatus {
                    version: projection.plugin_version,
                    sha256: projection.sha256,
                    note: projection.note,
                },
                failure: projection.failure.map(failure),
                held: held.map(|(position, since, by)| HeldStatus {
                    position: position.0,
                    since: time(*since),
                    waiting_for: by.clone(),
                }),
                leader: own,
                state: projection.state,
                name: projection.name,
            }
        });
        let mut projections: Vec<ProjectionStatus> = projections.collect();
        for unmade in folders.iter().flat_map(unmade) {
            if !projections.iter().any(|one| one.name == unmade.name) {
                let (_, lag_events, lag_seconds) = asked.lag(&unmade.name, Position(0));
                projections.push(ProjectionStatus {
                    head: head.0,
                    led: leaders.of_all.is_some(),
                    lag_events,
                    lag_seconds,
                    ..unmade
                });
            }
        }
        projections.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            projections,
            leader: leaders.of_all,
            folders: folders.into_iter().map(FolderStatus::from).collect(),
        }
    }

    pub(super) fn columns(&self) -> Vec<&'static str> {
        let mut columns = COLUMNS.to_vec();
        if self.each_has_its_own() {
            columns.push("LEADER");
        }
        columns
    }

    fn each_has_its_own(&self) -> bool {
        self.projections.iter().any(|one| one.leader.is_some())
    }

    pub(super) fn leader_line(&self) -> String {
        match &self.leader {
            Some(leader) => format!(
                "leader: {} on {} (backend pid {}), group {}, term {}, since {}\n",
                leader.node,
                leader.host,
                leader.backend_pid,
                leader.group,
                leader.term,
                leader.since
            ),
            None if self.each_has_its_own() => "leader: one for each projection\n".to_owned(),
            None => "leader: none\n".to_owned(),
        }
    }

    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        self.projections
            .iter()
            .map(|one| {
                let mut cells = vec![
                    one.name.clone(),
                    one.shown_state(),
                    one.position.to_string(),
                    one.head.to_string(),
                    one.lag_events.to_string(),
                    one.lag_seconds
                        .map_or_else(|| "unknown".to_owned(), |seconds| format!("{seconds:.1} s")),
                    one.generation.to_string(),
                    format!(
                        "{} {}",
                        one.plugin.version,
                        one.plugin.sha256.get(..12).unwrap_or_default()
                    ),
                ];
                if let Some(leader) = &one.leader {
                    let node = leader.as_ref().map(|leader| leader.node.clone());
                    cells.push(node.unwrap_or_else(|| "none".to_owned()));
                }
                cells
            })
            .collect()
    }

    /// What needs more words than a cell has.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.projections.iter().any(|one| !one.led) {
            notes.push(
                "unled: nobody leads it, and the state is what the last leader wrote\n".to_owned(),
            );
        }
        for one in &self.projections {
            if one.state == "paused" {
                let why = one.paused_reason.as_ref();
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                notes.push(format!("{}: paused{why}\n", one.name));
            }
            if let Some(failure) = &one.failure {
                // A pause does not mend what failed before it.
                let stopped = match one.state.as_str() {
                    "retrying" => "cannot begin yet",
                    "paused" => "had stopped before it was paused",
                    _ => "stopped",
                };
                notes.push(format!(
                    "{}: {stopped} ({}): {}\n",
                    one.name, failure.category, failure.message
                ));
            }
            if let Some(note) = &one.plugin.note
                && one.failure.is_none()
            {
                notes.push(format!("{}: {note}\n", one.name));
            }
            if one.dead_letters > 0 {
                notes.push(format!(
                    "{}: {} dead letters, {} parked streams; `projector-host dead-letter list {}` shows them\n",
                    one.name, one.dead_letters, one.parked_streams, one.name
                ));
            }
            if let Some(held) = &one.held {
                let writers = held
                    .waiting_for
                    .as_array()
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                let writers: Vec<String> = writers.iter().map(writer).collect();
                let since = held.since.as_deref().unwrap_or("a while ago");
                notes.push(format!(
                    "{}: position {} is missing since {since}; waiting for {}\n",
                    one.name,
                    held.position,
                    writers.join("; ")
                ));
            }
        }
        for folder in &self.folders {
            notes.extend(folder.notes(&self.projections));
        }
        notes
    }
}

impl ProjectionStatus {
    /// `live` of somebody who is gone is not `live`. What a person did holds without a leader.
    fn shown_state(&self) -> String {
        match self.state.as_str() {
            state if self.led || matches!(state, "paused" | "stopped" | "no-plugin") => {
                state.to_owned()
            }
            state => format!("{state}, unled"),
        }
    }
}

impl FolderStatus {
    /// Files that are refused, and those that are not what runs.
    fn notes(&self, projections: &[ProjectionStatus]) -> Vec<String> {
        let place = format!("{} ({}:{})", self.node, self.host, self.dir);
        let mut notes = Vec::new();
        for refused in self.refused.as_array().into_iter().flatten() {
            let text = |key: &str| refused[key].as_str().unwrap_or_default();
            if refused["file"].is_string() {
                notes.push(format!(
                    "{place} refuses {}: {}\n",
                    text("code"),
                    text("message")
                ));
            }
        }
        for (name, digest) in self.projections.as_object().into_iter().flatten() {
            let runs = projections
                .iter()
                .find(|one| one.name == *name && one.generation > 0);
            if let (Some(runs), Some(digest)) = (runs, digest.as_str())
                && runs.plugin.sha256 != digest
            {
                notes.push(format!(
                    "{place} has another file for {name}: {} instead of {}\n",
                    digest.get(..12).unwrap_or(digest),
                    runs.plugin.sha256.get(..12).unwrap_or_default(),
                ));
            }
        }
        notes
    }
}

impl From<Word> for FolderStatus {
    fn from(word: Word) -> Self {
        Self {
            node: word.node,
            host: word.folder.host,
            dir: word.folder.dir,
            projections: word.projections,
            refused: word.refused,
        }
    }
}

/// Projections whose tables cannot be made: they have no row of their own.
fn unmade(word: &Word) -> Vec<ProjectionStatus> {
    let refused = word.refused.as_array().into_iter().flatten();
    let unmade = refused.filter_map(|refused| {
        let Unmade {
            name,
            message,
            state,
        } = Unmade::read(refused)?;
        Some(ProjectionStatus {
            name: name.to_owned(),
            state: state.as_str().to_owned(),
            caught_up: false,
            led: false,
            generation: 0,
            position: 0,
            head: 0,
            lag_events: 0,
            lag_seconds: None,
            plugin: PluginStatus {
                version: String::new(),
                sha256: word.projections[name]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                note: None,
            },
            failure: Some(FailureStatus {
                category: "tables".to_owned(),
                position: None,
                event_type: None,
                message: message.to_owned(),
                at: None,
            }),
            held: None,
            leader: None,
            paused_reason: None,
            dead_letters: 0,
            parked_streams: 0,
            dead_letter_oldest_seconds: None,
        })
    });
    unmade.collect()
}

fn writer(writer: &Value) -> String {
    let text = |key: &str| writer[key].as_str().unwrap_or_default().to_owned();
    let pid = writer["pid"]
        .as_i64()
        .map_or_else(|| "no session".to_owned(), |pid| format!("pid {pid}"));
    let since = writer["since"]
        .as_str()
        .unwrap_or("a time that this role may not see");
    format!(
        "{pid} (application {:?}, user {:?}, open since {since})",
        text("application_name"),
        text("user"),
    )
}

fn failure(failure: Failure) -> FailureStatus {
    FailureStatus {
        at: time(failure.at),
        category: failure.category,
        position: failure.position,
        event_type: failure.event_type,
        message: failure.message,
    }
}

fn time(micros: i64) -> Option<String> {
    jiff::Timestamp::from_microsecond(micros)
        .ok()
        .map(|time| time.to_string())
}
