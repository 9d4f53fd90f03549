//! The network against a server that echoes.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    time::{Duration, Instant},
};

use super::*;

/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Long enough to believe that nothing comes.
const SILENCE: Duration = Duration::from_millis(150);

const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

/// A server that sends back what it gets, and says how its client ended.
fn echo() -> (String, std::sync::mpsc::Receiver<Result<(), ErrorKind>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!(
        "postgresql://x@{}/d",
        listener.local_addr().expect("it listens")
    );
    let (ended, ends) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let ended = ended.clone();
            thread::spawn(move || {
                let mut bytes = [0; 1024];
                let end = loop {
                    match stream.read(&mut bytes) {
                        Ok(0) => break Ok(()),
                        Ok(length) => drop(stream.write_all(&bytes[..length])),
                        Err(error) => break Err(error.kind()),
                    }
                };
                let _ = ended.send(end);
            });
        }
    });
    (url, ends)
}

fn client(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.address).expect("the proxy listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a bound");
    stream
}

fn says(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).expect("it is open");
}

fn hears(stream: &mut TcpStream, bytes: &[u8]) {
    let mut found = vec![0; bytes.len()];
    stream.read_exact(&mut found).expect("an answer");
    assert_eq!(found, bytes);
}

fn hears_nothing(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(SILENCE)).expect("a bound");
    let read = stream.read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(read, Err(ErrorKind::WouldBlock));
    stream.set_read_timeout(Some(PATIENCE)).expect("a bound");
}

#[test]
fn a_silent_network_keeps_what_it_swallows_and_delivers_it_when_it_heals() {
    let (url, ends) = echo();
    let proxy = Proxy::before(&url, 1);
    let mut stream = client(&proxy);
    says(&mut stream, b"one");
    hears(&mut stream, b"one");
    for silence in [Silence::ToServer, Silence::ToClient, Silence::Both] {
        proxy.link(Link::default().silent(silence));
        says(&mut stream, b"two");
        hears_nothing(&mut stream);
        proxy.heal();
        hears(&mut stream, b"two");
    }
    assert_eq!(proxy.held_back_bytes(), 9);
    proxy.link(Link::default().silent(Silence::Both));
    drop(stream);
    let mut unanswered = client(&proxy);
    says(&mut unanswered, b"hello");
    hears_nothing(&mut unanswered);
    assert!(ends.try_recv().is_err(), "no end arrives either");
    proxy.heal();
    assert_eq!(ends.recv_timeout(PATIENCE), Ok(Ok(())));
    hears(&mut unanswered, b"hello");
}

#[test]
fn a_fault_may_concern_one_purpose_only() {
    let (url, _ends) = echo();
    let proxy = Proxy::before(&url, 1);
    let (mut lock, mut write) = (client(&proxy), client(&proxy));
    let start = |purpose: &str| format!("application_name\0projector/g/n/{purpose}\0\0");
    for (stream, purpose) in [(&mut lock, "lock"), (&mut write, "write")] {
        says(stream, start(purpose).as_bytes());
        hears(stream, start(purpose).as_bytes());
        assert_eq!(proxy.connections(purpose), 1);
    }
    proxy.link(Link::default().silent(Silence::Both).only("lock"));
    says(&mut lock, b"x");
    says(&mut write, b"y");
    hears(&mut write, b"y");
    hears_nothing(&mut lock);
    assert_eq!((proxy.connections(""), proxy.connections("read")), (2, 0));
}

#[test]
fn every_close_arrives_as_what_it_is() {
    let (url, ends) = echo();
    let proxy = Proxy::before(&url, 1);
    let open = || {
        let mut stream = client(&proxy);
        says(&mut stream, b"x");
        hears(&mut stream, b"x");
        stream
    };
    let mut stream = open();
    assert_eq!(proxy.close(Close::Reset), 1);
    let end = stream.read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(end, Err(ErrorKind::ConnectionReset));
    assert_eq!(
        ends.recv_timeout(PATIENCE),
        Ok(Err(ErrorKind::ConnectionReset))
    );

    let mut stream = open();
    proxy.close(Close::Finish);
    assert_eq!(stream.read(&mut [0]).ok(), Some(0));
    assert_eq!(ends.recv_timeout(PATIENCE), Ok(Ok(())));

    let mut stream = open();
    proxy.close(Close::HalfToClient);
    assert_eq!(stream.read(&mut [0]).ok(), Some(0));
    assert!(
        ends.recv_timeout(SILENCE).is_err(),
        "the server knows nothing"
    );
    drop(stream);
    assert_eq!(ends.recv_timeout(PATIENCE), Ok(Ok(())));

    let _stream = open();
    proxy.close(Close::HalfToServer);
    assert_eq!(ends.recv_timeout(PATIENCE), Ok(Ok(())));

    let stream = open();
    proxy.link(Link::default().slow_close(SILENCE));
    let begun = Instant::now();
    drop(stream);
    assert_eq!(ends.recv_timeout(PATIENCE), Ok(Ok(())));
    assert!(begun.elapsed() >= SILENCE);
}

#[test]
fn a_commit_is_lost_before_the_server_or_after_it() {
    let (url, ends) = echo();
    let proxy = Proxy::before(&url, 1);
    let reset = |stream: &mut TcpStream| {
        let end = stream.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(end, Err(ErrorKind::ConnectionReset));
    };
    for how in [LostCommit::Request, LostCommit::Reply] {
        let mut stream = client(&proxy);
        says(&mut stream, COMMIT);
        hears(&mut stream, COMMIT);
        proxy.lose_commits(how, 1);
        says(&mut stream, b"Q\0\0\0\x0bROLLBK\0");
        hears(&mut stream, b"Q\0\0\0\x0bROLLBK\0");
        says(&mut stream, COMMIT);
        reset(&mut stream);
        assert!(ends.recv_timeout(PATIENCE).is_ok());
    }
    let mut stream = client(&proxy);
    proxy.lose_commits(LostCommit::ReplySilently, 1);
    says(&mut stream, COMMIT);
    hears_nothing(&mut stream);
    proxy.heal();
    hears_nothing(&mut stream);
    assert_eq!(proxy.lost_commits(), 3);
    drop(stream);
    assert!(ends.recv_timeout(PATIENCE).is_ok());
}

#[test]
fn a_forged_text_arrives_with_its_length_and_is_counted() {
    let (url, _ends) = echo();
    let proxy = Proxy::before(&url, 1);
    let mut stream = client(&proxy);
    proxy.forge("a = 1", "true");
    says(&mut stream, b"where a = 1 or a = 1;");
    hears(&mut stream, b"where true  or true ;");
    assert_eq!(proxy.forged(), 2);
}

#[test]
fn slices_latency_and_bandwidth_change_the_time_and_not_the_bytes() {
    let (url, _ends) = echo();
    let proxy = Proxy::before(&url, 1);
    let mut stream = client(&proxy);
    let text = vec![b'x'; 400];
    let mut timed = |link: Link| {
        proxy.link(link);
        let begun = Instant::now();
        says(&mut stream, &text);
        hears(&mut stream, &text);
        begun.elapsed()
    };
    timed(Link::default().slices(1));
    let ms = Duration::from_millis;
    assert!(timed(Link::default().latency(ms(30), ms(10))) >= ms(60));
    // Both directions may overlap, but neither is faster than this.
    assert!(timed(Link::default().bandwidth(4_000)) >= ms(100));
}
