//! A network between a client and a PostgreSQL server that does what real networks do when they fail.
//!
//! What it owns: one listening port, and every connection that was made through it. What it promises: bytes arrive in
//! order and unchanged, late or never, as in TCP; what is random follows from one seed; a fault that strikes once is
//! counted when it has struck, so that a test can tell. It must never outlive its value, and it knows of PostgreSQL's
//! protocol only the first message (who connects), COMMIT, and where the server's messages begin.
//!
//! ```no_run
//! use projector_testkit::proxy::{Close, Link, Proxy, Silence};
//! # fn main() -> projector_testkit::Result<()> {
//! let database = projector_testkit::test_database()?;
//! let proxy = Proxy::before(database.url(), 42);
//! // Clients connect to proxy.url().
//! proxy.link(Link::default().silent(Silence::Both)); // a black hole: no FIN, no RST
//! proxy.link(Link::default().silent(Silence::ToClient).only("lock")); // only the lock session's answers
//! proxy.heal(); // what was held back arrives now
//! proxy.close(Close::Reset);
//! # Ok(())
//! # }
//! ```

mod commit;
mod connection;
mod cut;
mod forge;
mod link;
mod pump;
mod wire;

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
};

pub use commit::LostCommit;
pub use connection::Close;
pub use link::{Link, Silence};

use connection::Connection;
use wire::Wire;

/// A port of 127.0.0.1 that leads to a server.
#[derive(Debug)]
pub struct Proxy {
    url: String,
    address: SocketAddr,
    wire: Arc<Wire>,
}

impl Proxy {
    /// A faultless network before the server in this URL.
    ///
    /// # Panics
    /// When the URL names no `host:port`, or there is no free port.
    pub fn before(url: &str, seed: u64) -> Self {
        let (server, range) = crate::url::authority(url).expect("the URL names host and port");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let wire = Arc::new(Wire::new(server, seed));
        let seen = Arc::clone(&wire);
        thread::spawn(move || accept(&listener, &seen));
        let mut url = url.to_owned();
        url.replace_range(range, &address.to_string());
        Self { url, address, wire }
    }

    /// The URL that leads through this network.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What the network does from now on, with open connections and with new ones.
    pub fn link(&self, link: Link) {
        self.wire.set(link);
    }

    /// A faultless network again: bytes and closes that were held back arrive now.
    pub fn heal(&self) {
        self.link(Link::default());
    }

    /// New connections lead to the server in this URL, as when an address moves to another machine.
    ///
    /// # Panics
    /// When the URL names no `host:port`.
    pub fn retarget(&self, url: &str) {
        let (server, _) = crate::url::authority(url).expect("the URL names host and port");
        self.wire.set_server(server);
    }

    /// Ends every open connection; says how many there were.
    pub fn close(&self, how: Close) -> usize {
        let open = self.wire.open();
        for connection in &open {
            connection.close(how);
        }
        open.len()
    }

    /// Loses this many of the next commits.
    pub fn lose_commits(&self, how: LostCommit, count: u64) {
        self.wire.commits.arm(how, count);
    }

    /// Commits that were lost so far.
    pub fn lost_commits(&self) -> u64 {
        self.wire.commits.lost()
    }

    /// Cuts one connection of this purpose: so many messages of the server still arrive, then the client finds the
    /// connection closed. Of rows that follow each other only the first two are counted. Connections with TLS are
    /// left alone.
    pub fn cut_after(&self, purpose: &'static str, messages: u64) {
        self.wire.cuts.arm(purpose, messages);
    }

    /// Takes the cut back, if it has not struck.
    pub fn cut_no_more(&self) {
        self.wire.cuts.disarm();
    }

    /// Connections that were cut so far.
    pub fn cuts(&self) -> u64 {
        self.wire.cuts.struck()
    }

    /// Writes another text into every request that holds this one, filled up with blanks to the same length.
    ///
    /// # Panics
    /// When the other text is longer.
    pub fn forge(&self, from: &str, to: &str) {
        self.wire.forge.arm(from, to);
    }

    /// Texts that were replaced so far.
    pub fn forged(&self) -> u64 {
        self.wire.forge.count()
    }

    /// Open connections whose purpose is this; all of them for an empty one.
    pub fn connections(&self, purpose: &str) -> usize {
        let open = self.wire.open();
        open.iter().filter(|one| one.serves(purpose)).count()
    }

    /// How often somebody has connected so far, with or without success.
    pub fn attempts(&self) -> u64 {
        self.wire.attempts()
    }

    /// Bytes that a silent network has held back so far.
    pub fn held_back_bytes(&self) -> u64 {
        self.wire.held_back_bytes()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.wire.end();
        self.close(Close::Reset);
        // Wakes the listener, which then sees that it is over.
        let _ = TcpStream::connect(self.address);
    }
}

fn accept(listener: &TcpListener, wire: &Arc<Wire>) {
    for client in listener.incoming() {
        if wire.is_over() {
            return;
        }
        let Ok(client) = client else { continue };
        wire.count_attempt();
        let wire = Arc::clone(wire);
        thread::spawn(move || {
            // A silent network does not carry the first packet either.
            if wire.carried_to_server()
                && let Ok(server) = TcpStream::connect(wire.server())
            {
                Connection::serve(client, server, &wire);
            }
        });
    }
}

#[cfg(test)]
mod tests;
