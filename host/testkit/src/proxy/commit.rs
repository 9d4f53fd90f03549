//! Commits that are lost on their way.

use std::sync::Mutex;

use super::wire::locked;

/// A COMMIT as sqlx, libpq and every other driver send it: a simple query.
const MESSAGE: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

/// What happens to a COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostCommit {
    /// The connection is reset before the server sees it: nothing is committed.
    Request,
    /// The server commits and answers; then the connection is reset.
    Reply,
    /// The server commits; its answer, and all that follows on this connection, never arrives.
    ReplySilently,
}

/// How many of the next ones are lost.
#[derive(Debug, Default)]
pub(super) struct Commits {
    armed: Mutex<(Option<LostCommit>, u64, u64)>,
}

impl Commits {
    pub(super) fn arm(&self, how: LostCommit, count: u64) {
        let mut armed = locked(&self.armed);
        armed.0 = Some(how);
        armed.1 = count;
    }

    pub(super) fn lost(&self) -> u64 {
        locked(&self.armed).2
    }

    /// What happens to the commit in this piece, if there is one and it is its turn.
    pub(super) fn strike(&self, piece: &[u8]) -> Option<LostCommit> {
        if !piece.windows(MESSAGE.len()).any(|part| part == MESSAGE) {
            return None;
        }
        let mut armed = locked(&self.armed);
        let how = armed.0.filter(|_| armed.1 > 0)?;
        armed.1 -= 1;
        armed.2 += 1;
        Some(how)
    }
}
