//! One connection: two sockets, who it serves, and how it ends.

use std::{
    net::{Shutdown, TcpStream},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use super::{link::Direction, pump, wire::Wire};

/// A blocked write looks this often whether its connection has ended.
const WRITE_TIMEOUT: Duration = Duration::from_millis(100);

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// RST to both sides.
    Reset,
    /// FIN to both sides.
    Finish,
    /// FIN to the server only: it thinks that the client has gone.
    HalfToServer,
    /// FIN to the client only: it thinks that the server has gone.
    HalfToClient,
}

#[derive(Debug)]
pub(super) struct Connection {
    client: TcpStream,
    server: TcpStream,
    purpose: OnceLock<String>,
    muted: AtomicBool,
    reply_is_lost: AtomicBool,
    closed: AtomicBool,
}

impl Connection {
    /// Carries bytes both ways until it ends.
    pub(super) fn serve(client: TcpStream, server: TcpStream, wire: &Arc<Wire>) {
        for stream in [&client, &server] {
            let _ = stream.set_nodelay(true);
            let _ = stream.set_write_timeout(Some(WRITE_TIMEOUT));
        }
        let connection = Arc::new(Self {
            client,
            server,
            purpose: OnceLock::new(),
            muted: AtomicBool::new(false),
            reply_is_lost: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        let number = wire.register(&connection);
        let (other, its_wire) = (Arc::clone(&connection), Arc::clone(wire));
        thread::spawn(move || pump::run(&other, Direction::ToClient, &its_wire, number));
        pump::run(&connection, Direction::ToServer, wire, number);
    }

    /// Where bytes of this direction come from and go to.
    pub(super) fn ends(&self, direction: Direction) -> (&TcpStream, &TcpStream) {
        match direction {
            Direction::ToServer => (&self.client, &self.server),
            Direction::ToClient => (&self.server, &self.client),
        }
    }

    /// Whether its `application_name` ends so.
    pub(super) fn serves(&self, purpose: &str) -> bool {
        purpose.is_empty()
            || self
                .purpose
                .get()
                .is_some_and(|own| own.rsplit('/').next() == Some(purpose))
    }

    /// Whether it has said who it is, in a message that could be read.
    pub(super) fn is_introduced(&self) -> bool {
        self.purpose.get().is_some()
    }

    /// Looks who connects.
    pub(super) fn introduce(&self, first: &[u8]) {
        const NAME: &[u8] = b"application_name\0";
        if self.purpose.get().is_some() {
            return;
        }
        let found = first.windows(NAME.len()).position(|part| part == NAME);
        if let Some(at) = found {
            let name = first[at + NAME.len()..].split(|byte| *byte == 0).next();
            let name = String::from_utf8_lossy(name.unwrap_or_default());
            let _ = self.purpose.set(name.into_owned());
        }
    }

    /// From now on nothing more reaches the client, also after the network has healed.
    pub(super) fn mute(&self) {
        self.muted.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_muted(&self, direction: Direction) -> bool {
        direction == Direction::ToClient && self.muted.load(Ordering::SeqCst)
    }

    /// The server's next answer ends the connection instead of arriving.
    pub(super) fn lose_the_reply(&self) {
        self.reply_is_lost.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_lost_its_reply(&self) -> bool {
        self.reply_is_lost.load(Ordering::SeqCst)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(super) fn close(&self, how: Close) {
        match how {
            Close::Reset => {
                for stream in [&self.client, &self.server] {
                    let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
                }
                self.closed.store(true, Ordering::SeqCst);
                // Sends nothing, but wakes who reads; the last one's drop sends the RST.
                let _ = self.client.shutdown(Shutdown::Read);
                let _ = self.server.shutdown(Shutdown::Read);
            }
            Close::Finish => {
                self.closed.store(true, Ordering::SeqCst);
                let _ = self.client.shutdown(Shutdown::Both);
                let _ = self.server.shutdown(Shutdown::Both);
            }
            Close::HalfToServer => drop(self.server.shutdown(Shutdown::Write)),
            Close::HalfToClient => drop(self.client.shutdown(Shutdown::Write)),
        }
    }
}
