//! A network that goes silent: no FIN, no RST, nothing arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use projector_host::leadership::role::Cause;
use projector_testkit::test_database;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::*;

/// Passes bytes on until it is told to swallow them.
struct Proxy {
    url: String,
    cut: Arc<AtomicBool>,
}

impl Proxy {
    async fn before(url: &str) -> Self {
        let (head, tail) = url.rsplit_once(':').expect("a port");
        let (port, rest) = tail.split_once('/').expect("a database");
        let port: u16 = port.parse().expect("a number");
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let own = listener.local_addr().expect("it listens").port();
        let cut = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&cut);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await {
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    tokio::spawn(pump(from_client, to_server, Arc::clone(&seen)));
                    tokio::spawn(pump(from_server, to_client, Arc::clone(&seen)));
                }
            }
        });
        Self {
            url: format!("{head}:{own}/{rest}"),
            cut,
        }
    }

    fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::SeqCst);
    }
}

async fn pump(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    cut: Arc<AtomicBool>,
) {
    let mut bytes = vec![0; 8_192];
    loop {
        let read = from.read(&mut bytes).await.unwrap_or(0);
        if cut.load(Ordering::SeqCst) {
            // Also the end of a connection is not seen on the other side.
            std::future::pending::<()>().await;
        }
        if read == 0 || to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_leader_that_is_cut_off_stops_by_itself_before_another_can_win() {
    let database = test_database().expect("a server is installed");
    database.psql(&control_sql("projector")).expect("created");
    let proxy = Proxy::before(database.url()).await;
    let mut cut_off = options(database.url(), "default", "cut-off");
    cut_off.lock_database = crate::support::database(&proxy.url, "default", "cut-off");
    let cut_off = Replica::start(cut_off);
    let old = cut_off.leads().await;
    let other = Replica::start(options(database.url(), "default", "other"));
    other
        .denied("the other stands by", |denied| denied.holder.is_some())
        .await;

    proxy.cut(true);
    let cut_at = Instant::now();
    let cause = cut_off.drains();
    let ended = old.lease.ended();
    let (cause, ()) = tokio::join!(cause, ended);
    assert_eq!(cause, Cause::LeaseRanOut);
    let stopped = cut_at.elapsed();
    let bound = quick().local_lease + Duration::from_millis(500);
    assert!(stopped < bound, "stopped after {stopped:?}");
    assert!(!other.leads_now(), "the server still keeps the lock then");
    let new = other.leads().await;
    let took = cut_at.elapsed();
    assert!(new.term > old.term && !old.lease.is_valid());
    let bound = quick().server_lease + quick().retry_interval + Duration::from_secs(1);
    assert!(took < bound, "taken over after {took:?}");

    proxy.cut(false);
    cut_off
        .denied("it is back as a follower", |denied| denied.holder.is_some())
        .await;
    assert!(new.lease.is_valid());
    cut_off.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn workers_that_are_busy_for_longer_than_the_lease_do_not_disturb_the_heartbeat() {
    let database = test_database().expect("a server is installed");
    database.psql(&control_sql("projector")).expect("created");
    let replica = Replica::start(options(database.url(), "default", "busy"));
    let leadership = replica.leads().await;
    // The only thread of this runtime computes and does not give way.
    let started = Instant::now();
    let mut longest = Duration::ZERO;
    while started.elapsed() < quick().local_lease * 3 {
        assert!(
            leadership.lease.is_valid(),
            "lost after {:?}",
            started.elapsed()
        );
        longest = longest.max(leadership.lease.remaining());
    }
    assert!(longest <= quick().local_lease);
    assert_eq!(replica.leads().await.term, leadership.term);
    replica.stop().await;
}
