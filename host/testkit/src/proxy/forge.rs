//! Statements that say something else when they arrive: how a guard of the program is taken away without a switch in
//! the program.

use std::sync::Mutex;

use super::wire::locked;

/// What is replaced, and how often that has happened.
#[derive(Debug, Default)]
pub(super) struct Forge {
    armed: Mutex<Option<(Vec<u8>, Vec<u8>)>>,
    count: Mutex<u64>,
}

impl Forge {
    pub(super) fn arm(&self, from: &str, to: &str) {
        let to = format!("{to:<0$}", from.len());
        assert_eq!(from.len(), to.len(), "lengths stand in the protocol");
        *locked(&self.armed) = Some((from.into(), to.into()));
    }

    pub(super) fn count(&self) -> u64 {
        *locked(&self.count)
    }

    /// Replaces all that is in this piece. A text that is cut between two pieces arrives as it was.
    pub(super) fn strike(&self, piece: &mut [u8]) {
        let armed = locked(&self.armed);
        let Some((from, to)) = &*armed else { return };
        let mut at = 0;
        while let Some(found) = piece[at..]
            .windows(from.len())
            .position(|part| part == from.as_slice())
        {
            at += found;
            piece[at..at + to.len()].copy_from_slice(to);
            at += to.len();
            *locked(&self.count) += 1;
        }
    }
}
