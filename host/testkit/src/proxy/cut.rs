//! A connection that ends between two messages of the server, at a place that a test has counted.

use std::sync::Mutex;

use super::{connection::Connection, wire::locked};

/// A message's type and its length, which counts itself.
const HEADER_BYTES: usize = 5;

/// The type of a message that is one row.
const ROW: u8 = b'D';

/// Rows in a row whose boundaries count: before the first and behind it. The others differ in nothing.
const ROWS_THAT_COUNT: u64 = 2;

/// Which connections are cut, and when.
#[derive(Debug, Default)]
pub(super) struct Cuts(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The purpose, and messages that still pass.
    armed: Option<(&'static str, u64)>,
    struck: u64,
}

/// The messages in one connection's answers, found by their lengths.
#[derive(Debug, Default)]
pub(super) struct Messages {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    /// Bytes until the next message.
    left: usize,
    rows: u64,
}

impl Cuts {
    pub(super) fn arm(&self, purpose: &'static str, after: u64) {
        locked(&self.0).armed = Some((purpose, after));
    }

    pub(super) fn disarm(&self) {
        locked(&self.0).armed = None;
    }

    pub(super) fn struck(&self) -> u64 {
        locked(&self.0).struck
    }

    /// How much of this piece arrives, if the connection is cut in it.
    pub(super) fn strike(
        &self,
        connection: &Connection,
        messages: &mut Messages,
        piece: &[u8],
    ) -> Option<usize> {
        // Before it has said who it is, one byte answers the question for TLS; with TLS nothing can be counted.
        if !connection.is_introduced() {
            return None;
        }
        let boundaries = messages.boundaries(piece);
        let mut state = locked(&self.0);
        let (purpose, left) = state.armed.as_mut()?;
        if !connection.serves(purpose) {
            return None;
        }
        for at in boundaries {
            if *left == 0 {
                state.armed = None;
                state.struck += 1;
                return Some(at);
            }
            *left -= 1;
        }
        None
    }
}

impl Messages {
    /// Where in this piece messages begin, but for rows that follow other rows.
    fn boundaries(&mut self, piece: &[u8]) -> Vec<usize> {
        let (mut found, mut at) = (Vec::new(), 0);
        while at < piece.len() {
            if self.left > 0 {
                let passed = self.left.min(piece.len() - at);
                self.left -= passed;
                at += passed;
                continue;
            }
            if self.header_bytes == 0 {
                self.rows = if piece[at] == ROW { self.rows + 1 } else { 0 };
                if self.rows <= ROWS_THAT_COUNT {
                    found.push(at);
                }
            }
            self.header[self.header_bytes] = piece[at];
            self.header_bytes += 1;
            at += 1;
            if self.header_bytes == HEADER_BYTES {
                let [_, length @ ..] = self.header;
                self.left = (u32::from_be_bytes(length) as usize).saturating_sub(length.len());
                self.header_bytes = 0;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_however_they_are_cut_into_pieces() {
        let message = |kind: u8, body: usize| {
            let mut message = vec![kind];
            message.extend((body as u32 + 4).to_be_bytes());
            message.extend(std::iter::repeat_n(ROW, body));
            message
        };
        let all = [
            (b'2', 0),
            (ROW, 7),
            (ROW, 3),
            (ROW, 0),
            (b'C', 9),
            (b'Z', 1),
        ];
        let bytes: Vec<u8> = all
            .iter()
            .flat_map(|(kind, body)| message(*kind, *body))
            .collect();
        for size in 1..=bytes.len() {
            let mut messages = Messages::default();
            let mut found = Vec::new();
            for (number, piece) in bytes.chunks(size).enumerate() {
                let begins = messages.boundaries(piece).into_iter();
                found.extend(begins.map(|at| number * size + at));
            }
            assert_eq!(found, [0, 5, 17, 30, 44], "pieces of {size}");
        }
    }
}
