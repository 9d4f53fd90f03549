//! Carries the bytes of one direction.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use super::{
    commit::LostCommit,
    connection::{Close, Connection},
    cut::Messages,
    link::{Direction, Link},
    wire::Wire,
};
use crate::random::Random;

const PIECE_BYTES_MAX: usize = 16 * 1024;

/// Until one side, the network or the proxy ends it.
pub(super) fn run(connection: &Connection, direction: Direction, wire: &Wire, number: u64) {
    let side = u64::from(direction == Direction::ToClient);
    let mut random = Random::new(wire.seed ^ (number << 1 | side));
    let (mut from, to) = connection.ends(direction);
    let mut bytes = vec![0; PIECE_BYTES_MAX];
    let mut messages = Messages::default();
    loop {
        let read = from.read(&mut bytes);
        if connection.is_closed() {
            return;
        }
        let piece = match read {
            Ok(length) => &mut bytes[..length],
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // The peer's RST goes on as one.
            Err(_) => {
                if wire.carried(connection, direction) {
                    connection.close(Close::Reset);
                }
                return;
            }
        };
        if direction == Direction::ToServer {
            connection.introduce(piece);
            wire.forge.strike(piece);
        }
        if !wire.link_of(connection).carries(direction) || connection.is_muted(direction) {
            wire.count_held_back(piece.len());
            if !wire.carried(connection, direction) {
                return;
            }
        }
        let link = wire.link_of(connection);
        if piece.is_empty() {
            if connection.is_muted(Direction::ToClient) {
                connection.close(Close::Finish);
            } else if wire.pass(connection, link.close_delay) {
                let _ = to.shutdown(Shutdown::Write);
            }
            return;
        }
        let cut = match direction {
            Direction::ToClient => wire.cuts.strike(connection, &mut messages, piece),
            Direction::ToServer => None,
        };
        let piece = &piece[..cut.unwrap_or(piece.len())];
        if !strikes(connection, direction, wire, piece)
            || !carry(connection, to, wire, &link, piece, &mut random)
        {
            return;
        }
        if cut.is_some() {
            // Not by an RST, which could overtake what has just been sent.
            connection.close(Close::Finish);
            return;
        }
    }
}

/// Lets the fault of a commit happen; false when this piece is not to be carried.
fn strikes(connection: &Connection, direction: Direction, wire: &Wire, piece: &[u8]) -> bool {
    if direction == Direction::ToClient {
        if connection.has_lost_its_reply() {
            connection.close(Close::Reset);
        }
        return !connection.is_closed();
    }
    match wire.commits.strike(piece) {
        Some(LostCommit::Request) => {
            connection.close(Close::Reset);
            return false;
        }
        Some(LostCommit::Reply) => connection.lose_the_reply(),
        Some(LostCommit::ReplySilently) => connection.mute(),
        None => {}
    }
    true
}

/// Writes a piece as slowly as the network is; false when the connection has ended.
fn carry(
    connection: &Connection,
    to: &TcpStream,
    wire: &Wire,
    link: &Link,
    piece: &[u8],
    random: &mut Random,
) -> bool {
    let jitter = Duration::from_micros(random.below(link.jitter.as_micros() as u64 + 1));
    if !(link.latency + jitter).is_zero() && !wire.pass(connection, link.latency + jitter) {
        return false;
    }
    for slice in piece.chunks(link.slice_bytes_max.unwrap_or(PIECE_BYTES_MAX)) {
        let time = link.duration_of(slice.len());
        if !time.is_zero() && !wire.pass(connection, time) {
            return false;
        }
        if !write(connection, to, slice) {
            // Who does not read any more is told so as the kernel would.
            connection.close(Close::Reset);
            return false;
        }
    }
    true
}

fn write(connection: &Connection, mut to: &TcpStream, mut slice: &[u8]) -> bool {
    while !slice.is_empty() {
        match to.write(slice) {
            Ok(written) if written > 0 => slice = &slice[written..],
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) && !connection.is_closed() => {}
            _ => return false,
        }
    }
    true
}
