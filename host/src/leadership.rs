//! Who may project: the lock decides who *tries*, the term decides who *may*.
//!
//! Each replica runs one election service (`election`) on an OS thread of its own. It holds one owned session on the
//! lock database, competes for one advisory lock, and on winning it claims a new [`Term`] in the read-model
//! database. Every batch then names that term, so that a leader that lost the lock without knowing it
//! changes nothing.
//!
//! Promises: work is allowed only while [`lease::Lease::is_valid`] says so; every await on a database has a
//! bound, and a session in doubt is dropped, never reused; an error only delays the next try. Must never:
//! take the lock twice on one session, lead on a standby or through a transaction pooler, or keep a
//! transaction open while leading. States, timing and failures stand in `docs/leadership.md`.

pub mod clock;
pub mod election;
pub mod error;
pub mod holder;
pub mod lease;
pub mod load;
pub mod role;
pub mod session;
pub mod term;

pub use election::{Handle, Options, Progress, spawn};
pub use error::{Error, Refusal};
pub use holder::{Holder, Leader, current_leader};
pub use lease::Lease;
pub use load::Load;

use std::fmt;

use uuid::Uuid;

/// The number of a leadership. It only rises, within all groups of one control schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub i64);

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a leader works under. Cheap to clone; valid as long as its lease.
#[derive(Debug, Clone)]
pub struct Leadership {
    /// The key of its row: `[leader] group`, or `group/projection` when each projection has a leader of its own.
    pub group: String,
    /// For order.
    pub term: Term,
    /// For identity: after a failover that lost a claim, the number alone could be issued twice.
    pub term_id: Uuid,
    /// The session that holds the lock, in the lock database.
    pub backend_pid: i32,
    /// When the term was claimed, by the clock of the read-model database.
    pub since: jiff::Timestamp,
    /// Whether work may start now.
    pub lease: Lease,
}

/// What a replica is, as everybody in the process sees it.
#[derive(Debug, Clone)]
pub enum Role {
    /// Stands by and tries again and again.
    Follower(Denied),
    /// Has the lock and claims the next term.
    Claiming,
    /// May project.
    Leading(Leadership),
    /// Must not start a batch any more; waits for the running ones to end.
    Draining {
        /// The term that ends.
        term: Term,
        /// Why it ends.
        cause: role::Cause,
    },
    /// Competes no more: the process is going down.
    Stopped,
}

impl Role {
    /// The word used in logs, metrics and probes.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Follower(_) => "follower",
            Self::Claiming => "claiming",
            Self::Leading(_) => "leading",
            Self::Draining { .. } => "draining",
            Self::Stopped => "stopped",
        }
    }

    /// The leadership, while there is one.
    #[must_use]
    pub const fn leadership(&self) -> Option<&Leadership> {
        match self {
            Self::Leading(leadership) => Some(leadership),
            _ => None,
        }
    }
}

/// Why a follower does not lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// Who holds the lock, when somebody does and it could be found out.
    pub holder: Option<Holder>,
    /// One sentence for people.
    pub reason: String,
    /// Set when the configuration or the database forbids leading; the try is repeated, slowly.
    pub refusal: Option<Refusal>,
    /// Since when this replica has not been leading.
    pub since: jiff::Timestamp,
    /// Denied for longer than `Options::denied_limit`: for the metric and the detail of readiness.
    pub overdue: bool,
}
