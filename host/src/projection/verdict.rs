//! The one answer to "is it caught up?", for every command, probe and metric. A pure decision.
//!
//! Promises: the state comes before the position. Who stands still is never done, wherever the checkpoint is, and
//! who is switched off on purpose is neither done nor waited for.

use crate::event_store::event::Position;

use super::progress::State;
use super::roster::Known;

/// What replicas have for a projection in their plugin folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum File {
    /// Nothing.
    None,
    /// Only what cannot be used.
    Broken,
    /// A plugin.
    Good,
}

/// How a projection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stand {
    /// Its state; none when it has not begun, or when a newer host wrote a word that this one does not know.
    pub state: Option<State>,
    /// Its checkpoint.
    pub position: Position,
    /// Whether its tables are there. A store without events has nobody behind, but for who cannot begin.
    pub begun: bool,
    /// What there is to run it.
    pub file: File,
}

/// Whether a projection is done with everything up to a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Done,
    /// Not yet; it comes by itself.
    Behind,
    /// Somebody has to act first.
    StandsStill,
    /// Its file was taken away from every replica, which is how a projection is switched off.
    Off,
}

impl Stand {
    /// A projection of which this replica knows at first hand.
    #[must_use]
    pub fn of(known: &Known, state: State) -> Self {
        Self {
            state: Some(state),
            position: known.progress.position(),
            begun: known.progress.refused().is_none(),
            file: match (&known.offer, known.broken) {
                (Some(_), _) => File::Good,
                (None, true) => File::Broken,
                (None, false) => File::None,
            },
        }
    }

    /// Whether it is done with everything up to the target.
    #[must_use]
    pub fn verdict(&self, target: Position) -> Verdict {
        match (self.state, self.file) {
            (Some(State::Stopped | State::Paused), _) | (Some(State::NoPlugin), File::Broken) => {
                Verdict::StandsStill
            }
            (Some(State::NoPlugin), File::None) => Verdict::Off,
            // It begins as soon as the leader has looked.
            (Some(State::NoPlugin), File::Good) | (None, _) => Verdict::Behind,
            (
                Some(
                    State::Starting
                    | State::CatchingUp
                    | State::Live
                    | State::Held
                    | State::Retrying,
                ),
                _,
            ) if self.begun && self.position >= target => Verdict::Done,
            (Some(_), _) => Verdict::Behind,
        }
    }
}

/// How many positions stand between a checkpoint and the head: never fewer than none, also when the store went back.
#[must_use]
pub fn lag(position: Position, head: Position) -> i64 {
    head.0.saturating_sub(position.0).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every state, behind the target and at it, with each kind of file.
    #[test]
    fn the_state_comes_before_the_position() {
        use State::{CatchingUp, Held, Live, NoPlugin, Paused, Retrying, Starting, Stopped};
        use Verdict::{Behind, Done, Off, StandsStill};
        for file in [File::None, File::Broken, File::Good] {
            let check = |state, before, at| {
                for (position, expected) in [(9, before), (10, at), (260, at)] {
                    let stand = Stand {
                        state,
                        position: Position(position),
                        begun: true,
                        file,
                    };
                    assert_eq!(stand.verdict(Position(10)), expected, "{stand:?}");
                    let begun = false;
                    let unmade = Stand { begun, ..stand }.verdict(Position(10));
                    assert_eq!(unmade, if at == Done { Behind } else { at }, "{stand:?}");
                }
            };
            for state in [Starting, CatchingUp, Live, Held, Retrying] {
                check(Some(state), Behind, Done);
            }
            for state in [Stopped, Paused] {
                check(Some(state), StandsStill, StandsStill);
            }
            let without = match file {
                File::None => Off,
                File::Broken => StandsStill,
                File::Good => Behind,
            };
            check(Some(NoPlugin), without, without);
            check(None, Behind, Behind);
        }
    }

    #[test]
    fn nobody_is_ahead_of_the_head() {
        assert_eq!(lag(Position(7), Position(10)), 3);
        assert_eq!(lag(Position(260), Position(10)), 0);
    }
}
