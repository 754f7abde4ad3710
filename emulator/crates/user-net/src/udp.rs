//! The guest's UDP flows: each has a connected socket of the host, so that it receives answers of its peer only.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::frame::{self, Flow};
use crate::wire::Outbox;

/// Most flows; a new one replaces the one that was idle longest.
const FLOWS_MAX: usize = 256;
/// Nanoseconds of idleness after which a flow is dropped (60 s).
const IDLE_LIMIT_NANOS: u64 = 60_000_000_000;
/// Most answers that one poll takes from a flow, so that one flow does not starve the others.
const ANSWERS_PER_POLL: usize = 64;
/// Largest payload, in bytes, that fits a frame: 20 bytes of IP header and 8 of UDP header precede it.
const PAYLOAD_MAX: usize = crate::wire::MTU - 28;

/// The flows.
#[derive(Default)]
pub(crate) struct UdpFlows(BTreeMap<Flow, HostSocket>);

struct HostSocket {
    socket: UdpSocket,
    /// Time of the last datagram in either direction, in nanoseconds since the start.
    used: u64,
}

impl UdpFlows {
    /// Sends a datagram to `host`. It is lost if the host does not take it.
    pub(crate) fn send(&mut self, flow: Flow, host: SocketAddr, payload: &[u8], nanos: u64) {
        if !self.0.contains_key(&flow) {
            let Ok(socket) = open(host) else { return };
            self.make_room();
            self.0.insert(flow, HostSocket { socket, used: 0 });
        }
        if let Some(exchange) = self.0.get_mut(&flow) {
            exchange.used = nanos;
            let _ = exchange.socket.send(payload);
        }
    }

    /// Receives answers, and drops flows that were idle for [`IDLE_LIMIT_NANOS`].
    pub(crate) fn poll(&mut self, nanos: u64, out: &mut Outbox) {
        // One byte more, to recognise datagrams that are too long.
        let mut payload = [0; PAYLOAD_MAX + 1];
        for (flow, exchange) in &mut self.0 {
            for _ in 0..ANSWERS_PER_POLL {
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
        self.0.retain(|_, exchange| nanos.saturating_sub(exchange.used) < IDLE_LIMIT_NANOS);
    }

    /// Flows that exist.
    pub(crate) fn count(&self) -> usize {
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
