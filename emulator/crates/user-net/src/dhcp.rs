//! The DHCP server (RFC 2131): one address, always the same.

use std::net::{Ipv4Addr, SocketAddrV4};

use smoltcp::wire::{DhcpMessageType, DhcpOption, DhcpPacket, DhcpRepr};

use crate::{GATEWAY, GUEST, NAME_SERVER, NETMASK, frame};

const SERVER: SocketAddrV4 = SocketAddrV4::new(GATEWAY, 67);
const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::BROADCAST, 68);

/// Number of the option that names the DNS servers (RFC 2132, section 3.8).
const DNS_SERVERS_OPTION: u8 = 6;
const LEASE_SECONDS: u32 = 86_400;
/// Bytes that a message is padded to: some clients drop one that is shorter than a BOOTP message (RFC 951).
const MESSAGE_MIN: usize = 300;

/// The frame that answers a client's message; `None` if the message gets no answer.
pub(crate) fn answer(message: &[u8]) -> Option<Vec<u8>> {
    let packet = DhcpPacket::new_checked(message).ok()?;
    let request = DhcpRepr::parse(&packet).ok()?;
    let wanted = request.requested_ip.unwrap_or(request.client_ip);
    let message_type = match request.message_type {
        DhcpMessageType::Discover => DhcpMessageType::Offer,
        DhcpMessageType::Request if wanted == GUEST => DhcpMessageType::Ack,
        DhcpMessageType::Request => DhcpMessageType::Nak,
        _ => return None,
    };
    let grants = message_type != DhcpMessageType::Nak;
    let name_server = [DhcpOption { kind: DNS_SERVERS_OPTION, data: &NAME_SERVER.octets() }];
    let reply = DhcpRepr {
        message_type,
        transaction_id: request.transaction_id,
        secs: 0,
        client_hardware_address: request.client_hardware_address,
        client_ip: Ipv4Addr::UNSPECIFIED,
        your_ip: if grants { GUEST } else { Ipv4Addr::UNSPECIFIED },
        server_ip: Ipv4Addr::UNSPECIFIED,
        router: grants.then_some(GATEWAY),
        subnet_mask: grants.then_some(NETMASK),
        relay_agent_ip: Ipv4Addr::UNSPECIFIED,
        broadcast: request.broadcast,
        requested_ip: None,
        client_identifier: None,
        server_identifier: Some(GATEWAY),
        parameter_request_list: None,
        dns_servers: None,
        max_size: None,
        lease_duration: grants.then_some(LEASE_SECONDS),
        renew_duration: None,
        rebind_duration: None,
        additional_options: if grants { &name_server } else { &[] },
    };
    let mut bytes = vec![0; reply.buffer_len().max(MESSAGE_MIN)];
    reply.emit(&mut DhcpPacket::new_unchecked(&mut bytes[..])).ok()?;
    Some(frame::datagram(SERVER, CLIENT, &bytes))
}
