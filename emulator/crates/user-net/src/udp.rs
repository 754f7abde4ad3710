//! The guest's datagrams: each flow has a socket of the host, whose answers come from where the guest sent to.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::frame::{self, Flow};
use crate::wire::Outbox;

/// Most flows; the one that rested longest makes room for a new one.
const FLOWS_MAX: usize = 256;
/// A flow that rests for so long is over.
const REST_NANOS: u64 = 60_000_000_000;
/// Most answers that a flow gets at a time, so that one does not starve the others.
const BURST: usize = 64;
/// Largest datagram that fits a frame.
const PAYLOAD_MAX: usize = crate::wire::MTU - 28;

/// The flows.
#[derive(Default)]
pub struct Udp(BTreeMap<Flow, Exchange>);

struct Exchange {
    socket: UdpSocket,
    /// When something was last sent or received.
    used: u64,
}

impl Udp {
    /// Sends a datagram to `host`. It is lost if the host does not take it.
    pub fn send(&mut self, flow: Flow, host: SocketAddr, payload: &[u8], nanos: u64) {
        if !self.0.contains_key(&flow) {
            let Ok(socket) = open(host) else { return };
            self.make_room();
            self.0.insert(flow, Exchange { socket, used: 0 });
        }
        if let Some(exchange) = self.0.get_mut(&flow) {
            exchange.used = nanos;
            let _ = exchange.socket.send(payload);
        }
    }

    /// Takes what came back, and ends flows that rest.
    pub fn poll(&mut self, nanos: u64, out: &mut Outbox) {
        // One byte more, to tell what is too long.
        let mut payload = [0; PAYLOAD_MAX + 1];
        for (flow, exchange) in &mut self.0 {
            for _ in 0..BURST {
                if out.is_full() {
                    break;
                }
                let Ok(length) = exchange.socket.recv(&mut payload) else {
                    break;
                };
                exchange.used = nanos;
                if length <= PAYLOAD_MAX {
                    out.push(frame::datagram(flow.peer, flow.guest, &payload[..length]));
                }
            }
        }
        self.0
            .retain(|_, exchange| nanos.saturating_sub(exchange.used) < REST_NANOS);
    }

    /// Flows that exist.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    fn make_room(&mut self) {
        if self.0.len() >= FLOWS_MAX
            && let Some((&oldest, _)) = self.0.iter().min_by_key(|(_, exchange)| exchange.used)
        {
            self.0.remove(&oldest);
        }
    }
}

fn open(host: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match host {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.set_nonblocking(true)?;
    socket.connect(host)?;
    Ok(socket)
}
