use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use smoltcp::socket::tcp::{Socket, State};

use super::guest::{Guest, tcp_socket};
use super::listener;
use crate::{Config, Forward, GATEWAY, NAME_SERVER};

/// Bytes that differ wherever they are cut.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| random.u8(..)).collect()
}

#[test]
fn a_megabyte_each_way_with_half_closed_ends() {
    let (listener, port) = listener();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        stream.read_to_end(&mut request).unwrap();
        stream.write_all(&noise(1 << 20, 2)).unwrap();
        request
    });
    let mut guest = Guest::new(Config::default());
    let handle = guest.connect((GATEWAY, port), 40_000);
    guest.until_state(handle, State::Established);
    guest.write(handle, &noise(1 << 20, 1));
    guest.socket::<Socket>(handle).close();
    assert_eq!(guest.read_to_end(handle), noise(1 << 20, 2));
    assert_eq!(server.join().unwrap(), noise(1 << 20, 1));
    guest.until(|guest| (guest.net.open().0 == 0).then_some(()));
}

#[test]
fn a_slow_reader_gets_everything() {
    let (listener, port) = listener();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The answer ends before the request has been read.
        stream.shutdown(Shutdown::Write).unwrap();
        thread::sleep(Duration::from_millis(100));
        let mut request = Vec::new();
        stream.read_to_end(&mut request).unwrap();
        request
    });
    let mut guest = Guest::new(Config::default());
    let handle = guest.connect((GATEWAY, port), 40_000);
    guest.until_state(handle, State::CloseWait);
    guest.write(handle, &noise(8 << 20, 1));
    guest.socket::<Socket>(handle).close();
    guest.until(|guest| (guest.net.open().0 == 0).then_some(()));
    assert!(server.join().unwrap() == noise(8 << 20, 1));
}

#[test]
fn many_connections_at_once() {
    let (listener, port) = listener();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut bytes = [0; 5];
                stream.read_exact(&mut bytes).unwrap();
                stream.write_all(&bytes).unwrap();
            });
        }
    });
    let mut guest = Guest::new(Config::default());
    let handles: Vec<_> = (0..50).map(|n| guest.connect((GATEWAY, port), 40_000 + n)).collect();
    for (n, &handle) in handles.iter().enumerate() {
        guest.until_state(handle, State::Established);
        guest.write(handle, format!("{n:05}").as_bytes());
    }
    for (n, &handle) in handles.iter().enumerate() {
        assert_eq!(guest.read_to_end(handle), format!("{n:05}").as_bytes());
    }
}

#[test]
fn a_port_without_a_server_refuses() {
    let (listener, port) = listener();
    drop(listener);
    let mut guest = Guest::new(Config::default());
    let handle = guest.connect((GATEWAY, port), 40_000);
    guest.until_state(handle, State::Closed);
    assert!(guest.nanos < 1_000_000_000, "a refusal, not a timeout");
    assert_eq!(guest.net.open(), (0, 0));
}

#[test]
fn addresses_that_lead_nowhere_refuse() {
    let (_listener, port) = listener();
    let addresses = [
        NAME_SERVER,
        Ipv4Addr::new(10, 0, 2, 77),
        Ipv4Addr::new(127, 0, 0, 1),
        Ipv4Addr::new(250, 0, 0, 1),
    ];
    let mut guest = Guest::new(Config::default());
    for address in addresses {
        let handle = guest.connect((address, port), 40_000);
        for _ in 0..20 {
            guest.step();
        }
        let state = guest.socket::<Socket>(handle).state();
        assert_ne!(state, State::Established, "{address}");
        assert_eq!(guest.net.open(), (0, 0));
        guest.sockets.remove(handle);
    }
}

#[test]
fn a_broken_half_breaks_the_other() {
    let (listener, port) = listener();
    let mut guest = Guest::new(Config::default());
    let handle = guest.connect((GATEWAY, port), 40_000);
    guest.until_state(handle, State::Established);
    let (mut stream, _) = listener.accept().unwrap();
    guest.socket::<Socket>(handle).abort();
    guest.until(|guest| (guest.net.open().0 == 0).then_some(()));
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the host sees the end");

    let handle = guest.connect((GATEWAY, port), 40_001);
    guest.until_state(handle, State::Established);
    let (stream, _) = listener.accept().unwrap();
    guest.write(handle, b"unread");
    for _ in 0..100 {
        guest.step();
    }
    // Closing with unread bytes resets the connection.
    drop(stream);
    guest.until_state(handle, State::Closed);
    assert_eq!(guest.net.open(), (0, 0));
}

#[test]
fn ports_are_forwarded() {
    let forward = Forward { host: 0, guest: 80 };
    let mut guest = Guest::new(Config { forwards: vec![forward], name_server: None });
    let mut socket = tcp_socket();
    socket.listen(80).unwrap();
    let handle = guest.sockets.add(socket);
    let port = guest.net.forwards().next().unwrap().host;
    let client = thread::spawn(move || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(&noise(200_000, 3)).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    });
    guest.until(|guest| guest.socket::<Socket>(handle).may_recv().then_some(()));
    assert_eq!(guest.read_to_end(handle), noise(200_000, 3));
    guest.write(handle, b"thanks");
    guest.socket::<Socket>(handle).close();
    guest.until(|guest| (guest.net.open().0 == 0).then_some(()));
    assert_eq!(client.join().unwrap(), b"thanks");

    // Nobody listens any more: the guest refuses, and the host's end is closed.
    let client = thread::spawn(move || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.read(&mut [0])
    });
    guest.until(|_| client.is_finished().then_some(()));
    assert!(!matches!(client.join().unwrap(), Ok(1)));
}

#[test]
fn a_guest_that_is_not_there_gets_nothing() {
    let forward = Forward { host: 0, guest: 80 };
    let mut guest = Guest::without_address(Config { forwards: vec![forward], name_server: None });
    let port = guest.net.forwards().next().unwrap().host;
    let _stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    guest.until(|guest| (guest.net.open().0 == 1).then_some(()));
    for _ in 0..150 {
        guest.nanos += 1_000_000_000;
        guest.step();
    }
    assert_eq!(guest.net.open().0, 0, "after the timeout");
}

#[test]
fn a_reset_ends_all() {
    let (listener, port) = listener();
    let mut guest = Guest::new(Config::default());
    let handle = guest.connect((GATEWAY, port), 40_000);
    guest.until_state(handle, State::Established);
    let (mut stream, _) = listener.accept().unwrap();
    guest.net.reset();
    assert_eq!(guest.net.open(), (0, 0));
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}
