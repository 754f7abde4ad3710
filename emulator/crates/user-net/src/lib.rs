//! User-mode networking: the network of one guest, made of the host's ordinary sockets. No privileges, no
//! interface of the host, and the same addresses as QEMU's `-netdev user`:
//!
//! | address | what |
//! |---|---|
//! | 10.0.2.15 | the guest, by DHCP |
//! | 10.0.2.2 | the gateway, which answers pings; to the guest's connections it is the host's loopback interface |
//! | 10.0.2.3 | the name server: the host's |
//! | any other | is reached through the host, or refused if the host cannot |
//!
//! A guest's TCP connection ends here, in a small TCP/IP stack ([`smoltcp`]), and is relayed to one of the host's;
//! a UDP datagram is sent from a socket of the host, which also receives the answers. Host ports can be forwarded to
//! the guest ([`Forward`]).
//!
//! ```
//! use user_net::{Config, UserNet};
//!
//! let mut net = UserNet::new(Config::default())?;
//! // An ARP request of the guest's for the gateway.
//! let mut request = vec![0xff; 6]; // to everybody
//! request.extend(user_net::GUEST_MAC);
//! request.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
//! request.extend(user_net::GUEST_MAC);
//! request.extend([10, 0, 2, 15, 0, 0, 0, 0, 0, 0, 10, 0, 2, 2]);
//! net.send(&request, 0);
//! let reply = net.receive().unwrap();
//! assert_eq!(reply[28..32], [10, 0, 2, 2]);
//! # Ok::<(), user_net::Error>(())
//! ```
//!
//! No call blocks: [`UserNet::poll`] polls the host's sockets. The caller gives the time, so that timeouts follow
//! the guest's clock. Whatever a guest sends, it has at most 256 connections and 256 UDP flows open, and
//! at most 1024 frames wait for it.
//!
//! Not modelled: IPv6, IP fragments (datagrams beyond 1472 bytes are lost), ICMP other than pings of the
//! gateway, forwarded UDP.

mod connection;
mod dhcp;
mod forward;
mod frame;
mod host;
mod net;
mod tcp;
mod udp;
mod wire;

use std::net::Ipv4Addr;

pub use forward::{BadForward, Forward};
pub use net::{Config, Error, UserNet};

/// The guest's hardware address.
pub const GUEST_MAC: [u8; 6] = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];
/// The gateway's hardware address.
const GATEWAY_MAC: [u8; 6] = [0x52, 0x55, 10, 0, 2, 2];

/// The guest's address.
pub const GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
/// The gateway, and the host's loopback interface.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
/// The name server.
pub const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
const NETMASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);

#[cfg(test)]
mod tests;
