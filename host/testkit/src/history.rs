//! What really happened: an append-only history that the databases write themselves, and the judgement on it.
//!
//! Triggers write one row for each move of a checkpoint, inside the batch's own transaction; the program under test
//! does not know of them. The judge shares no code with it: events come from the store, rows from the read model, and
//! the domain is told a second time. What it promises: a history in which an event was applied twice, not at all, out
//! of order, or by a replica whose term was over is never called right.

mod counts;
mod judge;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::site::Site;

pub(crate) use counts::miscounted;
pub use counts::{COUNTS, SEEN};

/// Makes the tables of the history.
const INSTALL: &str = include_str!("history/install.sql");

/// A move of a checkpoint, as committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Rises in the order in which rows were written.
    pub seq: i64,
    /// Name and generation.
    pub projection: (String, i32),
    /// Where the checkpoint stood.
    pub from: i64,
    /// Where it went.
    pub to: i64,
    /// The term in the row.
    pub term: (i64, String),
    /// The node that wrote it.
    pub replica: String,
    /// The batch's transaction.
    pub txid: String,
}

/// A claimed term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its number and its identity.
    pub term: (i64, String),
    /// The node that claimed it.
    pub replica: String,
    /// When, in microseconds since 1970.
    pub at: i64,
    /// When it was given back, if it was.
    pub released_at: Option<i64>,
}

/// A stored event's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// In the store.
    pub position: i64,
    /// Its stream.
    pub stream: String,
    /// In its stream.
    pub version: i64,
    /// Its identifier.
    pub id: String,
    /// Its type.
    pub kind: String,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In the order in which it was written.
    pub applied: Vec<Applied>,
    /// In the order of the claims.
    pub claims: Vec<Claim>,
    /// In the order of positions.
    pub events: Vec<Stored>,
    /// Where each checkpoint stands.
    pub checkpoints: BTreeMap<(String, i32), i64>,
    /// The rows of the guest that counts; none where it does not run.
    pub seen: Option<BTreeMap<String, i64>>,
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's letter, `A` to `J`.
    pub rule: char,
    /// What is wrong, with positions.
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({}) {}", self.rule, self.what)
    }
}

impl Site {
    /// Lets the read-model database write the history from now on. Nothing may have been applied yet.
    pub fn keep_history(&self) {
        self.model(INSTALL);
    }

    /// The history as it stands, once nothing is being written any more.
    pub fn history(&self) -> History {
        let rows = |answer: String| -> Vec<Value> {
            answer
                .lines()
                .map(|line| serde_json::from_str(line).expect("the server writes JSON"))
                .collect()
        };
        let applied = rows(self.model(
            "select json_build_object('seq', seq, 'p', projection, 'g', generation, 'from', from_position, \
             'to', to_position, 't', term, 'i', term_id, 'r', replica, 'x', txid::text) from history.applied order by seq",
        ));
        let claims = rows(self.model(
            "select json_build_object('t', c.term, 'i', c.term_id, 'r', c.replica, \
             'at', (extract(epoch from c.at) * 1000000)::bigint, 'out', (extract(epoch from r.at) * 1000000)::bigint) \
             from history.claims c left join history.releases r using (term) order by c.seq",
        ));
        let checkpoints = rows(self.model(
            "select json_build_object('p', projection, 'g', generation, 'to', position) from projector.checkpoints",
        ));
        History {
            applied: applied.iter().map(to_applied).collect(),
            claims: claims.iter().map(to_claim).collect(),
            events: self.stored(),
            checkpoints: checkpoints
                .iter()
                .map(|row| (projection(row), number(row, "to")))
                .collect(),
            seen: self.seen(),
        }
    }

    /// The place of every event.
    pub(crate) fn stored(&self) -> Vec<Stored> {
        let answer = self.store(
            "select json_build_object('p', position, 's', stream, 'v', version, 'i', id, 't', type) \
             from event_store.events order by position",
        );
        answer
            .lines()
            .map(|line| to_stored(&serde_json::from_str(line).expect("the server writes JSON")))
            .collect()
    }

    fn seen(&self) -> Option<BTreeMap<String, i64>> {
        let made = format!("select to_regclass('read_model.{SEEN}') is not null");
        let rows = || {
            let answer = self.model(&format!(
                "select json_build_object('k', key, 'n', seen) from read_model.{SEEN}"
            ));
            let row =
                |line| -> Value { serde_json::from_str(line).expect("the server writes JSON") };
            let rows = answer.lines().map(row);
            rows.map(|row| (text(&row, "k"), number(&row, "n")))
                .collect()
        };
        (self.model(&made) == "t").then(rows)
    }

    /// Judges the history and every row of the read model: the rules A to F and J. Empty when all is right.
    pub fn judge(&self) -> Vec<Violation> {
        let mut found = self.history().violations();
        if let Err(what) = self.check_rows() {
            found.push(Violation { rule: 'D', what });
        }
        found
    }
}

fn to_applied(row: &Value) -> Applied {
    Applied {
        seq: number(row, "seq"),
        projection: projection(row),
        from: number(row, "from"),
        to: number(row, "to"),
        term: (number(row, "t"), text(row, "i")),
        replica: text(row, "r"),
        txid: text(row, "x"),
    }
}

fn to_claim(row: &Value) -> Claim {
    Claim {
        term: (number(row, "t"), text(row, "i")),
        replica: text(row, "r"),
        at: number(row, "at"),
        released_at: row["out"].as_i64(),
    }
}

fn to_stored(row: &Value) -> Stored {
    Stored {
        position: number(row, "p"),
        stream: text(row, "s"),
        version: number(row, "v"),
        id: text(row, "i"),
        kind: text(row, "t"),
    }
}

fn projection(row: &Value) -> (String, i32) {
    let generation = number(row, "g").try_into().unwrap_or_default();
    (text(row, "p"), generation)
}

fn number(row: &Value, column: &str) -> i64 {
    row[column].as_i64().unwrap_or_default()
}

fn text(row: &Value, column: &str) -> String {
    row[column].as_str().unwrap_or_default().to_owned()
}
