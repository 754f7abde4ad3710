//! Malicious guests: nothing may panic, and the resources that they can hold are bounded.

use std::time::{Duration, Instant as HostInstant};

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpProtocol, Ipv4Packet,
    Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
};

use super::guest::Guest;
use super::{listener, shouter};
use crate::{Config, GATEWAY, GATEWAY_MAC, GUEST, GUEST_MAC, UserNet};

/// A frame with a TCP segment to the gateway.
fn segment(from: u16, to: u16, change: impl FnOnce(&mut TcpRepr<'_>)) -> Vec<u8> {
    let mut tcp = TcpRepr {
        src_port: from,
        dst_port: to,
        control: TcpControl::Syn,
        seq_number: TcpSeqNumber(1000),
        ack_number: None,
        window_len: 1000,
        window_scale: None,
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload: &[],
    };
    change(&mut tcp);
    let ip = Ipv4Repr {
        src_addr: GUEST,
        dst_addr: GATEWAY,
        next_header: IpProtocol::Tcp,
        payload_len: tcp.buffer_len(),
        hop_limit: 64,
    };
    let ethernet = EthernetRepr {
        src_addr: EthernetAddress(GUEST_MAC),
        dst_addr: EthernetAddress(GATEWAY_MAC),
        ethertype: EthernetProtocol::Ipv4,
    };
    let checksums = ChecksumCapabilities::default();
    let mut frame = vec![0; 34 + ip.payload_len];
    ethernet.emit(&mut EthernetFrame::new_unchecked(&mut frame[..]));
    let mut packet = Ipv4Packet::new_unchecked(&mut frame[14..]);
    ip.emit(&mut packet, &checksums);
    tcp.emit(
        &mut TcpPacket::new_unchecked(packet.payload_mut()),
        &GUEST.into(),
        &GATEWAY.into(),
        &checksums,
    );
    frame
}

/// Corrects the checksums of a changed frame, so that it gets past the first checks.
fn mend(frame: &mut [u8]) {
    if frame.len() < 34 || frame[12..14] != [8, 0] {
        return;
    }
    let Ok(mut packet) = Ipv4Packet::new_checked(&mut frame[14..]) else {
        return;
    };
    packet.fill_checksum();
    let (from, to) = (packet.src_addr().into(), packet.dst_addr().into());
    if packet.next_header() == IpProtocol::Tcp
        && let Ok(mut tcp) = TcpPacket::new_checked(packet.payload_mut())
    {
        tcp.fill_checksum(&from, &to);
    }
}

#[test]
fn a_flood_of_requests_is_bounded() {
    let (listener, port) = listener();
    std::thread::spawn(move || listener.incoming().map(Result::unwrap).collect::<Vec<_>>());
    let mut net = UserNet::new(Config::default()).unwrap();
    for round in 0..3 {
        for from in 1..=2000 {
            net.send(&segment(from, port, |_| {}), round * 1_000_000);
        }
        net.poll(round * 1_000_000);
        assert_eq!(net.open(), (256, 0));
    }
    // No frame was received: the number of those that wait is bounded.
    let waiting = std::iter::from_fn(|| net.receive()).count();
    assert!((256..=1024).contains(&waiting), "{waiting}");
    // The guest never answers the stack. Connections end by timeout, which starts once the host, busy as it may be, has connected.
    let start = HostInstant::now();
    for seconds in 0.. {
        net.poll(seconds * 1_000_000_000);
        while net.receive().is_some() {}
        if seconds >= 600 {
            if net.open() == (0, 0) {
                break;
            }
            assert!(start.elapsed().as_secs() < 20, "{:?}", net.open());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_request_that_is_taken_back() {
    let (_listener, port) = listener();
    let mut net = UserNet::new(Config::default()).unwrap();
    for from in 1..=1000 {
        net.send(&segment(from, port, |_| {}), 0);
        let reset = |tcp: &mut TcpRepr<'_>| {
            tcp.control = TcpControl::Rst;
            tcp.seq_number = TcpSeqNumber(1001);
        };
        net.send(&segment(from, port, reset), 0);
        net.poll(0);
        assert_eq!(net.open(), (0, 0));
    }
}

/// More data than any window allows, in order.
#[test]
fn a_guest_that_ignores_windows() {
    let (_listener, port) = listener();
    for scale in [None, Some(0), Some(14)] {
        let mut net = UserNet::new(Config::default()).unwrap();
        let options = |tcp: &mut TcpRepr<'_>| {
            tcp.window_scale = scale;
            tcp.max_seg_size = Some(1460);
        };
        net.send(&segment(1, port, options), 0);
        net.poll(0);
        let answer = net.receive().unwrap();
        let ours = TcpSeqNumber(i32::from_be_bytes(answer[38..42].try_into().unwrap())) + 1;
        for n in 0..200 {
            let data = |tcp: &mut TcpRepr<'_>| {
                tcp.control = TcpControl::None;
                tcp.seq_number = TcpSeqNumber(1001) + n * 1460;
                tcp.ack_number = Some(ours);
                tcp.payload = &[1; 1460];
            };
            net.send(&segment(1, port, data), 0);
        }
        assert_eq!(net.open(), (1, 0));
    }
}

#[test]
fn a_panic_in_the_stack_is_a_reset() {
    let (_listener, port) = listener();
    let mut net = UserNet::new(Config::default()).unwrap();
    net.send(&segment(1, port, |_| {}), 0);
    net.poll(0);
    net.catch_panics(|_| panic!("as if"));
    assert_eq!((net.open(), net.receive()), ((0, 0), None));
    net.send(&segment(1, port, |_| {}), 0);
    assert_eq!(net.open(), (1, 0));
}

#[test]
fn random_frames_do_no_harm() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut net = UserNet::new(Config::default()).unwrap();
    for round in 0..20_000 {
        let mut frame: Vec<u8> = (0..random.usize(..200)).map(|_| random.u8(..)).collect();
        // Half of them get past the first checks.
        if frame.len() > 34 && random.bool() {
            frame[..6].copy_from_slice(&GATEWAY_MAC);
            frame[12..15].copy_from_slice(&[8, 0, 0x45]);
            frame[23] = *random.choice(&[1, 6, 17]).unwrap();
            frame[26..34].copy_from_slice(&[10, 0, 2, 15, 10, 0, 2, 2]);
            mend(&mut frame);
        }
        net.send(&frame, round * 1000);
    }
    net.poll(1_000_000_000);
    assert_eq!(net.failures(), 0);
}

/// Plays a guest's real frames, many of them changed, to a network with real servers.
#[test]
fn changed_frames_do_no_harm() {
    let (listener, port) = listener();
    let datagrams = shouter();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                std::io::copy(&mut stream.try_clone().unwrap(), &mut stream)
            });
        }
    });
    let mut guest = Guest::new(Config::default());
    let handle = guest.connect((GATEWAY, port), 40_000);
    guest.until_state(handle, smoltcp::socket::tcp::State::Established);
    guest.write(handle, &[5; 5000]);
    guest.socket::<smoltcp::socket::tcp::Socket>(handle).close();
    assert_eq!(guest.read_to_end(handle), [5; 5000]);

    let mut random = fastrand::Rng::with_seed(2);
    for round in 0..600 {
        let mut net =
            UserNet::new(Config { forwards: Vec::new(), name_server: Some(datagrams) }).unwrap();
        let mut ours = TcpSeqNumber(0);
        for step in 0..30 {
            let mut frame = if random.bool() {
                random.choice(&guest.log).unwrap().clone()
            } else {
                // A segment that is near what the stack expects.
                segment(40_000, port, |tcp| {
                    let controls = [TcpControl::None, TcpControl::Psh, TcpControl::Fin];
                    tcp.control = *random.choice(&controls).unwrap();
                    tcp.seq_number = TcpSeqNumber(1001).wrapping_near(&mut random);
                    tcp.ack_number = Some(ours.wrapping_near(&mut random));
                    tcp.window_len = *random.choice(&[0, 1, 1000, u16::MAX]).unwrap();
                    tcp.payload = &[9; 700][..random.usize(..700)];
                })
            };
            if step == 0 {
                let scale = random.option(0..16);
                frame = segment(40_000, port, |tcp| tcp.window_scale = scale);
            } else if random.bool() {
                for _ in 0..random.usize(1..4) {
                    let at = random.usize(14..frame.len());
                    frame[at] = random.u8(..);
                }
                mend(&mut frame);
            }
            net.send(&frame, round * 1_000_000);
            net.poll(step * 3_000_000_000);
            while let Some(frame) = net.receive() {
                // The stack's initial sequence number.
                if frame.len() >= 54 && frame[47] == 0x12 {
                    let number = frame[38..42].try_into().unwrap();
                    ours = TcpSeqNumber(i32::from_be_bytes(number)) + 1;
                }
            }
        }
        assert_eq!(net.failures(), 0);
    }
}

trait Near {
    fn wrapping_near(self, random: &mut fastrand::Rng) -> Self;
}

impl Near for TcpSeqNumber {
    fn wrapping_near(self, random: &mut fastrand::Rng) -> Self {
        let far = [0, 0, 0, 1, 1000, 65_535, 1 << 30, i32::MIN];
        let distance: i32 = *random.choice(&far).unwrap();
        let distance = if random.bool() { distance } else { distance.wrapping_neg() };
        TcpSeqNumber(self.0.wrapping_add(distance))
    }
}

trait Optionally {
    fn option(&mut self, range: std::ops::Range<u8>) -> Option<u8>;
}

impl Optionally for fastrand::Rng {
    fn option(&mut self, range: std::ops::Range<u8>) -> Option<u8> {
        self.bool().then(|| self.u8(range))
    }
}
