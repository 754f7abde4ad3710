//! The guest's TCP connections.
//!
//! The request for a connection is held back until the host has the other half: then the stack gets a socket that
//! listens for it. If the host cannot connect, the stack finds nobody listening and refuses.

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

/// Most connections, finished ones included that the stack still knows.
const CONNECTIONS_MAX: usize = 256;
/// First port of the gateway's for connections to the guest (RFC 6335, section 6).
const DYNAMIC_PORTS: u16 = 49_152;

/// The stack, and the connections that end in it.
pub struct Tcp {
    interface: Interface,
    sockets: SocketSet<'static>,
    connecting: BTreeMap<Flow, Connecting>,
    open: BTreeMap<Flow, Connection>,
    /// Counts connections to the guest.
    accepted: u16,
}

/// A connection whose host half is under way.
struct Connecting {
    stream: TcpStream,
    /// The guest's request.
    packet: Vec<u8>,
}

impl Tcp {
    /// A stack without connections.
    pub fn new() -> Self {
        let mut nowhere = Outbox::default();
        let mut wire = Wire {
            packet: None,
            out: &mut nowhere,
        };
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        // Every address that the guest names is one of the stack's.
        interface.set_any_ip(true);
        interface.update_ip_addrs(|addresses| {
            // There is room for one.
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

    /// A request of the guest's for a connection, to be met by one to `host`.
    pub fn connect(
        &mut self,
        flow: Flow,
        packet: &[u8],
        host: Option<SocketAddr>,
        now: Instant,
        out: &mut Outbox,
    ) {
        // The guest asks again while it waits.
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
            self.connected(now, out);
        } else {
            self.receive(packet, now, out);
        }
    }

    /// The guest no longer wants a connection that it asked for.
    pub fn give_up(&mut self, flow: &Flow) {
        self.connecting.remove(flow);
    }

    /// A connection of the host's to a port of the guest.
    pub fn accept(&mut self, listener: &Listener) {
        while self.has_room()
            && let Some(stream) = listener.accept()
        {
            let guest = SocketAddrV4::new(GUEST, listener.forward.guest);
            let Some(peer) = self.free_endpoint(guest) else {
                return;
            };
            let mut socket = connection::socket();
            let context = self.interface.context();
            if socket
                .connect(context, endpoint(guest), endpoint(peer))
                .is_ok()
            {
                let handle = self.sockets.add(socket);
                let flow = Flow { guest, peer };
                self.open.insert(flow, Connection::new(handle, stream));
            }
        }
    }

    /// The stack gets an IP packet, and what it answers at once leaves.
    pub fn receive(&mut self, packet: Vec<u8>, now: Instant, out: &mut Outbox) {
        let mut wire = Wire {
            packet: Some(packet),
            out,
        };
        self.interface
            .poll_ingress_single(now, &mut wire, &mut self.sockets);
    }

    /// Moves data between the two halves of every connection, and lets go of those that are done.
    pub fn poll(&mut self, now: Instant, out: &mut Outbox) {
        self.connected(now, out);
        for connection in self.open.values_mut() {
            connection.pump(self.sockets.get_mut(connection.handle));
        }
        let mut wire = Wire { packet: None, out };
        self.interface.poll(now, &mut wire, &mut self.sockets);
        self.remove(Connection::is_done);
    }

    /// Connections that exist or are under way.
    pub fn count(&self) -> usize {
        self.open.len() + self.connecting.len()
    }

    /// Looks which of the host's halves are there.
    fn connected(&mut self, now: Instant, out: &mut Outbox) {
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
            // The request was malformed.
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

    /// An end at the gateway that has no connection to `guest`.
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
