//! A pooler in transaction mode, small enough to read: clients share servers, and a server is theirs only until
//! it is idle again. What PgBouncer does with `pool_mode = transaction`.

use std::sync::{Arc, Mutex};

use projector_host::error::Code;
use projector_host::leadership::Error;
use projector_host::leadership::session::Session;
use projector_testkit::test_database;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::*;

/// An idle server, and what it said when it was opened.
type Idle = Arc<Mutex<Vec<(TcpStream, Vec<u8>)>>>;

/// One message: a type byte (none in the first message of a client) and a body with its length.
async fn message(from: &mut TcpStream, typed: bool) -> std::io::Result<Vec<u8>> {
    let mut message = vec![0; if typed { 5 } else { 4 }];
    from.read_exact(&mut message).await?;
    let at = message.len() - 4;
    let length = u32::from_be_bytes([
        message[at],
        message[at + 1],
        message[at + 2],
        message[at + 3],
    ]);
    let body = usize::try_from(length).expect("it fits") - 4;
    let start = message.len();
    message.resize(start + body, 0);
    from.read_exact(&mut message[start..]).await?;
    Ok(message)
}

/// Everything up to `ReadyForQuery`, and whether the server is outside of a transaction then.
async fn answer(server: &mut TcpStream) -> std::io::Result<(Vec<u8>, bool)> {
    let mut all = Vec::new();
    loop {
        let part = message(server, true).await?;
        let ready = part[0] == b'Z';
        let idle = part.get(5) == Some(&b'I');
        all.extend(part);
        if ready {
            return Ok((all, idle));
        }
    }
}

async fn serve(mut client: TcpStream, port: u16, idle: Idle) -> std::io::Result<()> {
    let mut startup = message(&mut client, false).await?;
    while startup[4..8] == 80_877_103_u32.to_be_bytes() {
        client.write_all(b"N").await?;
        startup = message(&mut client, false).await?;
    }
    let open = async || {
        let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
        server.write_all(&startup).await?;
        let (greeting, _) = answer(&mut server).await?;
        Ok::<_, std::io::Error>((server, greeting))
    };
    let take = || idle.lock().expect("no panic").pop();
    let (server, greeting) = match take() {
        Some(found) => found,
        None => open().await?,
    };
    client.write_all(&greeting).await?;
    idle.lock().expect("no panic").push((server, greeting));
    let mut pinned: Option<(TcpStream, Vec<u8>)> = None;
    loop {
        let request = message(&mut client, true).await?;
        if request[0] == b'X' {
            return Ok(());
        }
        let asks = matches!(request[0], b'Q' | b'S');
        let (mut stream, greeting) = match pinned.take() {
            Some(found) => found,
            None => match take() {
                Some(found) => found,
                None => open().await?,
            },
        };
        stream.write_all(&request).await?;
        if !asks {
            pinned = Some((stream, greeting));
            continue;
        }
        let (reply, free) = answer(&mut stream).await?;
        client.write_all(&reply).await?;
        if free {
            idle.lock().expect("no panic").push((stream, greeting));
        } else {
            pinned = Some((stream, greeting));
        }
    }
}

#[tokio::test]
async fn behind_a_transaction_pooler_nobody_competes_and_the_reason_is_said() {
    let test = test_database().expect("a server is installed");
    let (head, tail) = test.url().rsplit_once(':').expect("a port");
    let (port, rest) = tail.split_once('/').expect("a database");
    let port: u16 = port.parse().expect("a number");
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let pooled = listener.local_addr().expect("it listens").port();
    let idle = Idle::default();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(serve(client, port, Arc::clone(&idle)));
        }
    });
    let url = format!("{head}:{pooled}/{rest}");
    match Session::open(&site(&url, "a")).await {
        Err(Error::Refused(refusal)) => {
            assert_eq!(refusal.code, Code(401));
            assert!(
                refusal.message.contains("transaction mode"),
                "{}",
                refusal.message
            );
        }
        other => panic!("{other:?}"),
    }
    let replica = Replica::start(options(&url, "default", "a"));
    let denied = replica
        .denied("it is refused", |denied| denied.refusal.is_some())
        .await;
    assert_eq!(denied.refusal.map(|refusal| refusal.code), Some(Code(401)));
    replica.stop().await;
    let direct = Session::open(&site(test.url(), "a")).await;
    direct.expect("without the pooler it opens");
}
