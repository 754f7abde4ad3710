//! The guest's Ethernet frames: parsing and building.

use std::net::{Ipv4Addr, SocketAddrV4};

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr, IpProtocol, Ipv4Packet, Ipv4Repr, TcpPacket, UdpPacket, UdpRepr,
};

use crate::{GATEWAY, GATEWAY_MAC, GUEST_MAC, NAME_SERVER, NETMASK};

pub(crate) const ETHERNET_HEADER: usize = 14;
const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const DHCP_SERVER: u16 = 67;

/// Both ends of a connection, or of an exchange of datagrams, as the guest names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flow {
    /// The guest's end.
    pub guest: SocketAddrV4,
    /// The other end.
    pub peer: SocketAddrV4,
}

/// What a TCP segment does to its connection, by its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// Opens it: SYN without ACK.
    Opens,
    /// Resets it: RST.
    Resets,
    /// Any other segment.
    Other,
}

/// What a frame of the guest's holds, if the network handles it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received<'a> {
    /// An ARP request for the hardware address of one of the network's own addresses.
    ArpRequest(ArpRepr),
    /// A message to the DHCP server.
    Dhcp(&'a [u8]),
    /// A UDP datagram.
    Udp { flow: Flow, payload: &'a [u8] },
    /// An IP packet with a TCP segment.
    Tcp { flow: Flow, kind: Segment, packet: &'a [u8] },
    /// An IP packet with an ICMP message to the gateway or the name server.
    Icmp(&'a [u8]),
}

/// Parses a frame. `None` if it is malformed or not addressed to the network.
pub(crate) fn parse(frame: &[u8]) -> Option<Received<'_>> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    let to = ethernet.dst_addr();
    if !to.is_broadcast() && to != EthernetAddress(GATEWAY_MAC) {
        return None;
    }
    let payload = &frame[ETHERNET_HEADER..];
    match ethernet.ethertype() {
        EthernetProtocol::Arp => arp_request(payload),
        EthernetProtocol::Ipv4 => ipv4(payload),
        _ => None,
    }
}

fn arp_request(payload: &[u8]) -> Option<Received<'_>> {
    let request = ArpRepr::parse(&ArpPacket::new_checked(payload).ok()?).ok()?;
    match request {
        ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Request,
            target_protocol_addr: target,
            ..
        } if is_ours(target) => Some(Received::ArpRequest(request)),
        _ => None,
    }
}

fn ipv4(payload: &[u8]) -> Option<Received<'_>> {
    let packet = Ipv4Packet::new_checked(payload).ok()?;
    let header = Ipv4Repr::parse(&packet, &ChecksumCapabilities::default()).ok()?;
    if packet.more_frags() || packet.frag_offset() != 0 {
        return None;
    }
    let bytes = &payload[..packet.total_len().into()];
    let content = &bytes[packet.header_len().into()..];
    let flow = |from, to| Flow {
        guest: SocketAddrV4::new(header.src_addr, from),
        peer: SocketAddrV4::new(header.dst_addr, to),
    };
    match header.next_header {
        IpProtocol::Udp => {
            let udp = UdpPacket::new_checked(content).ok()?;
            let (from, to) = (header.src_addr.into(), header.dst_addr.into());
            UdpRepr::parse(&udp, &from, &to, &ChecksumCapabilities::default()).ok()?;
            let payload = &content[UDP_HEADER..udp.len().into()];
            if udp.dst_port() == DHCP_SERVER {
                return Some(Received::Dhcp(payload));
            }
            let flow = flow(udp.src_port(), udp.dst_port());
            is_guest(header.src_addr).then_some(Received::Udp { flow, payload })
        }
        _ if !is_guest(header.src_addr) => None,
        IpProtocol::Tcp => {
            let tcp = TcpPacket::new_checked(content).ok()?;
            Some(Received::Tcp {
                flow: flow(tcp.src_port(), tcp.dst_port()),
                kind: match (tcp.rst(), tcp.syn() && !tcp.ack()) {
                    (true, _) => Segment::Resets,
                    (false, true) => Segment::Opens,
                    (false, false) => Segment::Other,
                },
                packet: bytes,
            })
        }
        IpProtocol::Icmp => is_ours(header.dst_addr).then_some(Received::Icmp(bytes)),
        _ => None,
    }
}

fn is_ours(address: Ipv4Addr) -> bool {
    address == GATEWAY || address == NAME_SERVER
}

/// True for an address of the guest's network.
pub(crate) fn is_local(address: Ipv4Addr) -> bool {
    address & NETMASK == GATEWAY & NETMASK
}

/// True for an address that the guest may use, be it from DHCP or of its own choice.
fn is_guest(address: Ipv4Addr) -> bool {
    is_local(address) && !is_ours(address) && !matches!(address.octets()[3], 0 | 255)
}

/// A frame to the guest with room for an IP packet of `length` bytes.
pub(crate) fn ipv4_frame(length: usize) -> Vec<u8> {
    ethernet_frame(EthernetProtocol::Ipv4, EthernetAddress(GUEST_MAC), length)
}

fn ethernet_frame(ethertype: EthernetProtocol, to: EthernetAddress, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; ETHERNET_HEADER + length];
    let header = EthernetRepr { src_addr: EthernetAddress(GATEWAY_MAC), dst_addr: to, ethertype };
    header.emit(&mut EthernetFrame::new_unchecked(&mut bytes[..]));
    bytes
}

/// The ARP reply to a [`Received::ArpRequest`], with the gateway's hardware address.
pub(crate) fn arp_reply(question: ArpRepr) -> Option<Vec<u8>> {
    let ArpRepr::EthernetIpv4 {
        source_hardware_addr,
        source_protocol_addr,
        target_protocol_addr,
        ..
    } = question
    else {
        return None;
    };
    let answer = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Reply,
        source_hardware_addr: EthernetAddress(GATEWAY_MAC),
        source_protocol_addr: target_protocol_addr,
        target_hardware_addr: source_hardware_addr,
        target_protocol_addr: source_protocol_addr,
    };
    let mut frame =
        ethernet_frame(EthernetProtocol::Arp, source_hardware_addr, answer.buffer_len());
    answer.emit(&mut ArpPacket::new_unchecked(&mut frame[ETHERNET_HEADER..]));
    Some(frame)
}

/// A frame to the guest with a datagram of at most 1472 bytes.
pub(crate) fn datagram(from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    let checksums = ChecksumCapabilities::default();
    let ip = Ipv4Repr {
        src_addr: *from.ip(),
        dst_addr: *to.ip(),
        next_header: IpProtocol::Udp,
        payload_len: UDP_HEADER + payload.len(),
        hop_limit: 64,
    };
    let udp = UdpRepr { src_port: from.port(), dst_port: to.port() };
    let mut frame = ipv4_frame(IP_HEADER + ip.payload_len);
    let mut packet = Ipv4Packet::new_unchecked(&mut frame[ETHERNET_HEADER..]);
    ip.emit(&mut packet, &checksums);
    udp.emit(
        &mut UdpPacket::new_unchecked(packet.payload_mut()),
        &ip.src_addr.into(),
        &ip.dst_addr.into(),
        payload.len(),
        |to| to.copy_from_slice(payload),
        &checksums,
    );
    frame
}
