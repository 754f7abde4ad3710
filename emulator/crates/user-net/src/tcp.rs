//! The guest's TCP connections.
//!
//! The guest's SYN is held back until the host has connected to the peer: then the stack gets a listening socket,
//! and after it the SYN. If the host cannot connect, the stack gets the SYN without such a socket and refuses it.

use std::collections::BTreeMap;
use std::net::{SocketAddr, SocketAddrV4, TcpStream};

use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::socket::tcp::{Socket, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr, IpEndpoint, Ipv4Cidr};

use crate::connection::{self, Connection};
use crate::forward::Listener;
use crate::frame::Flow;
use crate::wire::{Outbox, Wire};
use crate::{GATEWAY, GUEST, host};

/// Most connections, including finished ones in TIME-WAIT.
const CONNECTIONS_MAX: usize = 256;
/// First of the gateway's ports from which it connects to the guest: the dynamic ports of RFC 6335, section 6.
const DYNAMIC_PORTS: u16 = 49_152;

/// The TCP/IP stack and the guest's connections.
pub(crate) struct Tcp {
    interface: Interface,
    sockets: SocketSet<'static>,
    /// Connections that the host has not established yet.
    connecting: BTreeMap<Flow, Connecting>,
    open: BTreeMap<Flow, Connection>,
    /// Offset from [`DYNAMIC_PORTS`] of the port tried last for a connection to the guest.
    accepted: u16,
}

/// A connection that the host is still opening.
struct Connecting {
    stream: TcpStream,
    /// The IP packet with the guest's SYN.
    packet: Vec<u8>,
}

impl Tcp {
    /// A stack without connections.
    pub(crate) fn new() -> Self {
        let mut nowhere = Outbox::default();
        let mut wire = Wire { packet: None, out: &mut nowhere };
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        // The stack accepts packets to every address, not only to the gateway's.
        interface.set_any_ip(true);
        interface.update_ip_addrs(|addresses| {
            // The list has room for one address, so that this cannot fail.
            let _ = addresses.push(IpCidr::Ipv4(Ipv4Cidr::new(GATEWAY, 24)));
        });
        Self {
            interface,
            sockets: SocketSet::new(Vec::new()),
            connecting: BTreeMap::new(),
            open: BTreeMap::new(),
            accepted: 0,
        }
    }

    /// The guest opens a connection, for which the host connects to `host`; `None`: the stack refuses it.
    pub(crate) fn connect(
        &mut self,
        flow: Flow,
        packet: &[u8],
        host: Option<SocketAddr>,
        now: Instant,
        out: &mut Outbox,
    ) {
        // The guest retransmits its SYN while it waits.
        if self.connecting.contains_key(&flow) {
            return;
        }
        let packet = packet.to_vec();
        if self.state(&flow) == Some(State::TimeWait) {
            self.forget(&flow);
        }
        if !self.open.contains_key(&flow)
            && let Some(host) = host
            && self.has_room()
            && let Ok(stream) = host::start_to_connect(host)
        {
            self.connecting.insert(flow, Connecting { stream, packet });
            self.finish_connecting(now, out);
        } else {
            self.receive(packet, now, out);
        }
    }

    /// The guest reset a connection that the host is still opening.
    pub(crate) fn cancel_pending(&mut self, flow: &Flow) {
        self.connecting.remove(flow);
    }

    /// Accepts the host's pending connections to a forwarded port, and connects to the guest for each.
    pub(crate) fn accept(&mut self, listener: &Listener) {
        while self.has_room()
            && let Some(stream) = listener.accept()
        {
            let guest = SocketAddrV4::new(GUEST, listener.forward.guest);
            let Some(peer) = self.free_endpoint(guest) else {
                return;
            };
            let mut socket = connection::socket();
            let context = self.interface.context();
            if socket.connect(context, endpoint(guest), endpoint(peer)).is_ok() {
                let handle = self.sockets.add(socket);
                let flow = Flow { guest, peer };
                self.open.insert(flow, Connection::new(handle, stream));
            }
        }
    }

    /// Gives the stack an IP packet, and puts its immediate answers into `out`.
    pub(crate) fn receive(&mut self, packet: Vec<u8>, now: Instant, out: &mut Outbox) {
        let mut wire = Wire { packet: Some(packet), out };
        self.interface.poll_ingress_single(now, &mut wire, &mut self.sockets);
    }

    /// Moves data between the two halves of every connection, and removes those that are done.
    pub(crate) fn poll(&mut self, now: Instant, out: &mut Outbox) {
        self.finish_connecting(now, out);
        for connection in self.open.values_mut() {
            connection.transfer(self.sockets.get_mut(connection.handle));
        }
        let mut wire = Wire { packet: None, out };
        self.interface.poll(now, &mut wire, &mut self.sockets);
        self.remove(Connection::is_done);
    }

    /// Number of connections, pending ones included.
    pub(crate) fn count(&self) -> usize {
        self.open.len() + self.connecting.len()
    }

    /// Promotes the connections that the host has established, and has the stack refuse those that failed.
    fn finish_connecting(&mut self, now: Instant, out: &mut Outbox) {
        let mut done = Vec::new();
        for (&flow, connecting) in &self.connecting {
            match host::is_connected(&connecting.stream) {
                Ok(false) => {}
                state => done.push((flow, state.is_ok())),
            }
        }
        for (flow, succeeded) in done {
            let Some(Connecting { stream, packet }) = self.connecting.remove(&flow) else {
                continue;
            };
            let mut socket = connection::socket();
            if !succeeded || socket.listen(endpoint(flow.peer)).is_err() {
                self.receive(packet, now, out);
                continue;
            }
            let handle = self.sockets.add(socket);
            self.open.insert(flow, Connection::new(handle, stream));
            self.receive(packet, now, out);
            // The socket still listens: the SYN was malformed.
            if self.state(&flow) == Some(State::Listen) {
                self.forget(&flow);
            }
        }
    }

    fn has_room(&mut self) -> bool {
        if self.count() >= CONNECTIONS_MAX {
            self.remove(|_, socket| socket.state() == State::TimeWait);
        }
        self.count() < CONNECTIONS_MAX
    }

    /// An address of the gateway with a port that has no connection to `guest` yet.
    fn free_endpoint(&mut self, guest: SocketAddrV4) -> Option<SocketAddrV4> {
        (0..=CONNECTIONS_MAX).find_map(|_| {
            self.accepted = self.accepted.wrapping_add(1) % (u16::MAX - DYNAMIC_PORTS);
            let peer = SocketAddrV4::new(GATEWAY, DYNAMIC_PORTS + self.accepted);
            (!self.open.contains_key(&Flow { guest, peer })).then_some(peer)
        })
    }

    fn forget(&mut self, flow: &Flow) {
        if let Some(connection) = self.open.remove(flow) {
            self.sockets.remove(connection.handle);
        }
    }

    fn state(&self, flow: &Flow) -> Option<State> {
        let connection = self.open.get(flow)?;
        Some(self.sockets.get::<Socket<'_>>(connection.handle).state())
    }

    fn remove(&mut self, which: impl Fn(&Connection, &Socket<'_>) -> bool) {
        let sockets = &mut self.sockets;
        self.open.retain(|_, connection| {
            let removed = which(connection, sockets.get(connection.handle));
            if removed {
                sockets.remove(connection.handle);
            }
            !removed
        });
    }
}

fn endpoint(address: SocketAddrV4) -> IpEndpoint {
    IpEndpoint::new((*address.ip()).into(), address.port())
}
