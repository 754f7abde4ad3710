//! The network: dispatches the guest's frames to ARP, DHCP, UDP and TCP.

use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use smoltcp::time::Instant;

use crate::forward::{Forward, Listener};
use crate::frame::{self, Received, Segment};
use crate::tcp::Tcp;
use crate::udp::UdpFlows;
use crate::wire::Outbox;
use crate::{dhcp, host};

/// How to build a network.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Ports of the host that are forwarded to the guest.
    pub forwards: Vec<Forward>,
    /// The DNS server that 10.0.2.3, port 53 stands for; `None`: nothing answers there.
    pub name_server: Option<SocketAddr>,
}

impl Config {
    /// A network whose name server is that of the host, the first in `/etc/resolv.conf`.
    pub fn of_host(forwards: Vec<Forward>) -> Self {
        let resolv_conf = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        Self { forwards, name_server: host::name_server(&resolv_conf) }
    }
}

/// Why a network cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A port of the host cannot be listened on.
    #[error("port {port} of the host: {error}")]
    Port {
        /// The port.
        port: u16,
        /// Why.
        error: io::Error,
    },
}

/// The network of one guest.
pub struct UserNet {
    name_server: Option<SocketAddr>,
    listeners: Vec<Listener>,
    tcp: Tcp,
    udp: UdpFlows,
    out: Outbox,
    /// How often the TCP/IP stack panicked since the start.
    failures: usize,
}

impl UserNet {
    /// Builds a network and binds the forwarded ports.
    pub fn new(config: Config) -> Result<Self, Error> {
        let bind = |forward: &Forward| {
            let port = forward.host;
            Listener::bind(*forward).map_err(|error| Error::Port { port, error })
        };
        Ok(Self {
            name_server: config.name_server,
            listeners: config.forwards.iter().map(bind).collect::<Result<_, _>>()?,
            tcp: Tcp::new(),
            udp: UdpFlows::default(),
            out: Outbox::default(),
            failures: 0,
        })
    }

    /// The forwarded ports; those of the host are the ones bound, never 0.
    pub fn forwards(&self) -> impl Iterator<Item = Forward> {
        self.listeners.iter().map(|listener| listener.forward)
    }

    /// Takes an Ethernet frame from the guest, without its checksum (FCS). `nanos`: nanoseconds since the start.
    pub fn send(&mut self, frame: &[u8], nanos: u64) {
        self.catch_panics(|net| net.take(frame, nanos));
    }

    fn take(&mut self, frame: &[u8], nanos: u64) {
        let now = instant(nanos);
        match frame::parse(frame) {
            Some(Received::ArpRequest(question)) => {
                let answer = frame::arp_reply(question);
                answer.into_iter().for_each(|frame| self.out.push(frame));
            }
            Some(Received::Dhcp(message)) => {
                let answer = dhcp::answer(message);
                answer.into_iter().for_each(|frame| self.out.push(frame));
            }
            Some(Received::Udp { flow, payload }) => {
                if let Some(host) = host::address(flow.peer, self.name_server) {
                    self.udp.send(flow, host, payload, nanos);
                }
            }
            Some(Received::Tcp { flow, kind, packet }) => match kind {
                Segment::Opens => {
                    let host = host::address(flow.peer, self.name_server);
                    self.tcp.connect(flow, packet, host, now, &mut self.out);
                }
                Segment::Resets => {
                    self.tcp.cancel_pending(&flow);
                    self.tcp.receive(packet.to_vec(), now, &mut self.out);
                }
                Segment::Other => self.tcp.receive(packet.to_vec(), now, &mut self.out),
            },
            Some(Received::Icmp(packet)) => {
                self.tcp.receive(packet.to_vec(), now, &mut self.out);
            }
            None => {}
        }
    }

    /// The next frame for the guest.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        self.out.pop()
    }

    /// Polls the host's sockets and the timeouts. `nanos`: nanoseconds since the start.
    pub fn poll(&mut self, nanos: u64) {
        self.catch_panics(|net| {
            for listener in &net.listeners {
                net.tcp.accept(listener);
            }
            net.tcp.poll(instant(nanos), &mut net.out);
            net.udp.poll(nanos, &mut net.out);
        });
    }

    /// Drops every connection, since the guest was reset and no longer knows them. The forwarded ports stay.
    pub fn reset(&mut self) {
        self.tcp = Tcp::new();
        self.udp = UdpFlows::default();
        self.out.clear();
    }

    /// Runs `work`; if it panics, resets the network. A hostile guest can violate an assertion of the stack, and must
    /// not end the simulator with it.
    pub(crate) fn catch_panics(&mut self, work: impl FnOnce(&mut Self)) {
        // Unwind-safe: the state that a panic leaves behind is dropped by the reset.
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
            self.failures += 1;
            let failures = self.failures;
            tracing::warn!(
                failures,
                "the guest broke the network's stack: all connections are lost"
            );
            self.reset();
        }
    }

    #[cfg(test)]
    pub(crate) fn failures(&self) -> usize {
        self.failures
    }

    /// Numbers of TCP connections, pending ones included, and of UDP flows.
    pub fn open(&self) -> (usize, usize) {
        (self.tcp.count(), self.udp.count())
    }
}

fn instant(nanos: u64) -> Instant {
    Instant::from_micros(i64::try_from(nanos / 1000).unwrap_or(i64::MAX))
}
