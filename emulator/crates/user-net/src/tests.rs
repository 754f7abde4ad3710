//! Tests of the network between a guest's TCP/IP stack and real sockets of the host.

mod guest;
mod hostile;
mod small;
mod tcp;

use std::net::{SocketAddr, TcpListener, UdpSocket};

/// A server's socket on the host, and its port.
fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A thread that sends every datagram back with `!` after it.
fn shouter() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 65_536];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            bytes[length] = b'!';
            let _ = socket.send_to(&bytes[..=length], from);
        }
    });
    address
}
