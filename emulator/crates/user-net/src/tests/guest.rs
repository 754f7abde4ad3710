//! A guest: a second smoltcp stack, connected to the network by its frames.

use std::collections::VecDeque;
use std::time::{Duration, Instant as HostInstant};

use smoltcp::iface::{Config as StackConfig, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities};
use smoltcp::socket::{AnySocket, tcp};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Address};

use crate::{Config, GATEWAY, GUEST, GUEST_MAC, UserNet};

/// The guest's network card.
#[derive(Default)]
pub(super) struct Card {
    received: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
}

pub(super) struct Guest {
    pub net: UserNet,
    pub interface: Interface,
    pub sockets: SocketSet<'static>,
    pub nanos: u64,
    /// Every frame that the guest sent.
    pub log: Vec<Vec<u8>>,
    card: Card,
}

impl Guest {
    /// A guest that knows its address.
    pub(super) fn new(config: Config) -> Self {
        let mut guest = Self::without_address(config);
        guest.set_address();
        guest
    }

    pub(super) fn without_address(config: Config) -> Self {
        let mut card = Card::default();
        let stack = StackConfig::new(EthernetAddress(GUEST_MAC).into());
        Self {
            net: UserNet::new(config).unwrap(),
            interface: Interface::new(stack, &mut card, Instant::ZERO),
            sockets: SocketSet::new(Vec::new()),
            nanos: 0,
            log: Vec::new(),
            card,
        }
    }

    pub(super) fn set_address(&mut self) {
        self.interface.update_ip_addrs(|all| all.push(IpCidr::new(GUEST.into(), 24)).unwrap());
        let routes = self.interface.routes_mut();
        routes.add_default_ipv4_route(GATEWAY).unwrap();
    }

    /// Advances the time by a millisecond and polls both stacks.
    pub(super) fn step(&mut self) {
        let now = Instant::from_micros((self.nanos / 1000) as i64);
        self.interface.poll(now, &mut self.card, &mut self.sockets);
        for frame in self.card.sent.drain(..) {
            self.net.send(&frame, self.nanos);
            self.log.push(frame);
        }
        self.net.poll(self.nanos);
        while let Some(frame) = self.net.receive() {
            self.card.received.push_back(frame);
        }
        self.nanos += 1_000_000;
        std::thread::sleep(Duration::from_micros(20));
    }

    /// Steps until `done` returns `Some`; sleeps in between, since the host's end is another thread.
    #[track_caller]
    pub(super) fn until<R>(&mut self, mut done: impl FnMut(&mut Self) -> Option<R>) -> R {
        let start = HostInstant::now();
        loop {
            if let Some(result) = done(self) {
                return result;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "nothing happens");
            self.step();
        }
    }

    pub(super) fn socket<T: AnySocket<'static>>(&mut self, handle: SocketHandle) -> &mut T {
        self.sockets.get_mut(handle)
    }

    /// Starts to open a TCP connection.
    pub(super) fn connect(&mut self, to: (Ipv4Address, u16), from: u16) -> SocketHandle {
        let mut socket = tcp_socket();
        let context = self.interface.context();
        socket.connect(context, to, from).unwrap();
        self.sockets.add(socket)
    }

    /// Steps until a connection is in `state`.
    #[track_caller]
    pub(super) fn until_state(&mut self, handle: SocketHandle, state: tcp::State) {
        self.until(|guest| (guest.socket::<tcp::Socket>(handle).state() == state).then_some(()));
    }

    /// Sends all bytes.
    #[track_caller]
    pub(super) fn write(&mut self, handle: SocketHandle, bytes: &[u8]) {
        let mut rest = bytes;
        self.until(|guest| {
            let socket = guest.socket::<tcp::Socket>(handle);
            let sent = socket.send_slice(rest).unwrap();
            rest = &rest[sent..];
            rest.is_empty().then_some(())
        });
    }

    /// Receives to the end of the stream.
    #[track_caller]
    pub(super) fn read_to_end(&mut self, handle: SocketHandle) -> Vec<u8> {
        let mut all = Vec::new();
        self.until(|guest| {
            let socket = guest.socket::<tcp::Socket>(handle);
            while socket.can_recv() {
                socket
                    .recv(|bytes| {
                        all.extend_from_slice(bytes);
                        (bytes.len(), ())
                    })
                    .unwrap();
            }
            (!socket.may_recv()).then_some(())
        });
        all
    }
}

pub(super) fn tcp_socket() -> tcp::Socket<'static> {
    let buffer = || tcp::SocketBuffer::new(vec![0; 100_000]);
    tcp::Socket::new(buffer(), buffer())
}

impl Device for Card {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Received, Sent<'_>)> {
        let frame = self.received.pop_front()?;
        Some((Received(frame), Sent(self)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Sent<'_>> {
        Some(Sent(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.max_transmission_unit = 1514;
        capabilities
    }
}

pub(super) struct Received(Vec<u8>);

pub(super) struct Sent<'a>(&'a mut Card);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl phy::TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut frame = vec![0; length];
        let result = fill(&mut frame);
        self.0.sent.push_back(frame);
        result
    }
}
