//! DHCP, UDP, DNS, pings, and what needs no guest.

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::{dhcpv4, icmp, udp};
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, IpAddress, IpCidr};

use super::guest::Guest;
use super::shouter;
use crate::{Config, GATEWAY, GUEST, NAME_SERVER, host};

#[test]
fn dhcp_gives_the_address() {
    let mut guest = Guest::without_address(Config::default());
    let handle = guest.sockets.add(dhcpv4::Socket::new());
    let given = guest.until(|guest| match guest.socket::<dhcpv4::Socket>(handle).poll() {
        Some(dhcpv4::Event::Configured(config)) => {
            Some((config.address, config.router, config.dns_servers.to_vec()))
        }
        _ => None,
    });
    let (address, router, name_servers) = given;
    assert_eq!(IpCidr::Ipv4(address), IpCidr::new(GUEST.into(), 24));
    assert_eq!((router, name_servers), (Some(GATEWAY), vec![NAME_SERVER]));
    // The lease is renewed.
    guest.set_address();
    guest.nanos += 50_000 * 1_000_000_000;
    let before = guest.log.len();
    for _ in 0..10 {
        guest.step();
    }
    assert!(guest.log.len() > before);
    assert!(guest.socket::<dhcpv4::Socket>(handle).poll().is_none());
}

fn udp_socket(guest: &mut Guest, port: u16) -> smoltcp::iface::SocketHandle {
    let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 16], vec![0; 20_000]);
    let mut socket = udp::Socket::new(buffer(), buffer());
    socket.bind(port).unwrap();
    guest.sockets.add(socket)
}

#[test]
fn datagrams_come_back_from_where_they_went() {
    let server = shouter();
    let mut guest = Guest::new(Config { forwards: Vec::new(), name_server: Some(server) });
    let handle = udp_socket(&mut guest, 5000);
    for to in [(GATEWAY, server.port()), (NAME_SERVER, 53)] {
        for payload in [&b"hello"[..], b"", &[7; 1471]] {
            let socket = guest.socket::<udp::Socket>(handle);
            socket.send_slice(payload, to).unwrap();
            let (answer, from) = guest.until(|guest| {
                let socket = guest.socket::<udp::Socket>(handle);
                let (bytes, meta) = socket.recv().ok()?;
                Some((bytes.to_vec(), meta.endpoint))
            });
            assert_eq!(from, to.into());
            assert_eq!(answer, [payload, b"!"].concat());
        }
    }
    assert_eq!(guest.net.open(), (0, 2));
    // An answer that does not fit a frame is lost; what follows it is not.
    for payload in [&[1; 1472][..], b"next"] {
        let socket = guest.socket::<udp::Socket>(handle);
        socket.send_slice(payload, (GATEWAY, server.port())).unwrap();
    }
    let answer = guest.until(|guest| {
        let socket = guest.socket::<udp::Socket>(handle);
        Some(socket.recv().ok()?.0.to_vec())
    });
    assert_eq!(answer, b"next!");
    // A minute of rest ends a flow.
    guest.nanos += 61_000_000_000;
    guest.step();
    assert_eq!(guest.net.open(), (0, 0));
}

#[test]
fn flows_are_bounded() {
    let server = shouter();
    let mut guest = Guest::new(Config::default());
    for port in 0..300 {
        let handle = udp_socket(&mut guest, 1000 + port);
        let socket = guest.socket::<udp::Socket>(handle);
        socket.send_slice(b"x", (GATEWAY, server.port())).unwrap();
        guest.step();
    }
    assert_eq!(guest.net.open(), (0, 256));
}

#[test]
fn the_gateway_answers_pings_and_others_do_not() {
    let mut guest = Guest::new(Config::default());
    let buffer = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; 4], vec![0; 256]);
    let mut socket = icmp::Socket::new(buffer(), buffer());
    socket.bind(icmp::Endpoint::Ident(1)).unwrap();
    let handle = guest.sockets.add(socket);
    let ping = Icmpv4Repr::EchoRequest { ident: 1, seq_no: 1, data: b"data" };
    for (to, answers) in [(GATEWAY, true), ([192, 0, 2, 1].into(), false)] {
        let socket = guest.socket::<icmp::Socket>(handle);
        let room = socket.send(ping.buffer_len(), to.into()).unwrap();
        ping.emit(&mut Icmpv4Packet::new_unchecked(room), &ChecksumCapabilities::default());
        for _ in 0..10 {
            guest.step();
        }
        let answer = guest.socket::<icmp::Socket>(handle).recv();
        assert_eq!(answer.ok().map(|(_, from)| from), answers.then(|| IpAddress::from(to)));
    }
}

#[test]
fn name_servers_are_found() {
    let text = "# a comment\nsearch example.org\nnameserver fe80::1%eth0\nnameserver 192.0.2.7\n";
    assert_eq!(host::name_server(text), Some(([192, 0, 2, 7], 53).into()));
    let six = host::name_server("nameserver 2001:db8::1 # six");
    assert_eq!(six, Some("[2001:db8::1]:53".parse().unwrap()));
    assert_eq!(host::name_server("nameserver\nnameservers 1.2.3.4"), None);
}
