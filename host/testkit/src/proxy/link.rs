//! What a network does with what it carries.

use std::time::Duration;

/// A direction in which nothing arrives. Senders notice nothing, as with dropped packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// No request arrives.
    ToServer,
    /// Requests arrive, no answer does.
    ToClient,
    /// A black hole.
    Both,
}

/// A direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    ToServer,
    ToClient,
}

/// What happens to bytes on their way. The default is a faultless network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    only: Option<&'static str>,
    silence: Option<Silence>,
    pub(super) latency: Duration,
    pub(super) jitter: Duration,
    pub(super) slice_bytes_max: Option<usize>,
    pub(super) bytes_per_second_max: Option<u64>,
    pub(super) close_delay: Duration,
}

impl Link {
    /// Only for connections of this purpose (the last part of their `application_name`); others are faultless.
    #[must_use]
    pub fn only(mut self, purpose: &'static str) -> Self {
        self.only = Some(purpose);
        self
    }

    /// Nothing arrives in this direction until the network heals; then everything does.
    #[must_use]
    pub fn silent(mut self, silence: Silence) -> Self {
        self.silence = Some(silence);
        self
    }

    /// Each piece takes this long, and up to `jitter` longer. Pieces of one direction wait for each other.
    #[must_use]
    pub fn latency(mut self, latency: Duration, jitter: Duration) -> Self {
        self.latency = latency;
        self.jitter = jitter;
        self
    }

    /// Bytes arrive in pieces of at most this many.
    #[must_use]
    pub fn slices(mut self, bytes_max: usize) -> Self {
        self.slice_bytes_max = Some(bytes_max.max(1));
        self
    }

    /// No more bytes than this arrive in a second, in each direction of each connection.
    #[must_use]
    pub fn bandwidth(mut self, bytes_per_second_max: u64) -> Self {
        self.bytes_per_second_max = Some(bytes_per_second_max.max(1));
        self
    }

    /// One side's end reaches the other this much later.
    #[must_use]
    pub fn slow_close(mut self, delay: Duration) -> Self {
        self.close_delay = delay;
        self
    }

    pub(super) fn concerns(&self, serves: impl Fn(&str) -> bool) -> bool {
        self.only.is_none_or(serves)
    }

    pub(super) fn carries(&self, direction: Direction) -> bool {
        !matches!(
            (self.silence, direction),
            (Some(Silence::Both), _)
                | (Some(Silence::ToServer), Direction::ToServer)
                | (Some(Silence::ToClient), Direction::ToClient)
        )
    }

    /// How long this many bytes take by bandwidth alone.
    pub(super) fn duration_of(&self, bytes: usize) -> Duration {
        self.bytes_per_second_max.map_or(Duration::ZERO, |max| {
            Duration::from_secs_f64(bytes as f64 / max as f64)
        })
    }
}
