//! The host's side: which address the host connects to for one that the guest names.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

use crate::frame::is_local;
use crate::{GATEWAY, NAME_SERVER};

const DNS: u16 = 53;

/// The address that the host connects to when the guest names `peer`; `None` if the guest may not reach it.
pub(crate) fn address(peer: SocketAddrV4, name_server: Option<SocketAddr>) -> Option<SocketAddr> {
    let ip = *peer.ip();
    if ip == GATEWAY {
        return Some((Ipv4Addr::LOCALHOST, peer.port()).into());
    }
    if ip == NAME_SERVER {
        return name_server.filter(|_| peer.port() == DNS);
    }
    // From 240.0.0.0 up all addresses are reserved; the last one is the broadcast address.
    let unreachable = is_local(ip)
        || ip.is_unspecified()
        || ip.is_loopback()
        || ip.is_multicast()
        || ip.octets()[0] >= 240;
    (!unreachable).then_some(peer.into())
}

/// The first name server in the text of a `resolv.conf`.
pub(crate) fn name_server(resolv_conf: &str) -> Option<SocketAddr> {
    let mut lines = resolv_conf.lines().map(str::split_whitespace);
    let address = lines.find_map(|mut words| {
        (words.next() == Some("nameserver")).then(|| words.next()?.parse::<IpAddr>().ok()).flatten()
    });
    address.map(|ip| (ip, DNS).into())
}

/// Starts to open a TCP connection without blocking.
pub(crate) fn start_to_connect(to: SocketAddr) -> io::Result<TcpStream> {
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

/// True once a connection by [`start_to_connect`] is established, false while it is pending; an error if it failed.
pub(crate) fn is_connected(stream: &TcpStream) -> io::Result<bool> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}
