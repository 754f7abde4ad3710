//! The stack's network interface: wraps its IP packets in Ethernet frames for the guest.

use std::collections::VecDeque;

use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::time::Instant;

use crate::frame::{self, ETHERNET_HEADER};

/// Largest IP packet.
pub(crate) const MTU: usize = 1500;
/// Most frames that the outbox holds.
const WAITING_MAX: usize = 1024;

/// Queue of the frames to the guest.
#[derive(Default)]
pub(crate) struct Outbox(VecDeque<Vec<u8>>);

impl Outbox {
    /// True if no more frames fit.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= WAITING_MAX
    }

    /// Adds a frame; it is lost if the outbox is full.
    pub(crate) fn push(&mut self, frame: Vec<u8>) {
        if !self.is_full() {
            self.0.push_back(frame);
        }
    }

    /// Takes the first frame.
    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        self.0.pop_front()
    }

    /// Drops all frames.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The stack's network interface during a call.
pub(crate) struct Wire<'a> {
    /// A packet from the guest.
    pub packet: Option<Vec<u8>>,
    /// What the stack sends.
    pub out: &'a mut Outbox,
}

/// A packet that the stack receives.
pub(crate) struct Received(Vec<u8>);

/// A packet that the stack sends.
pub(crate) struct Sent<'a>(&'a mut Outbox);

impl Device for Wire<'_> {
    type RxToken<'b>
        = Received
    where
        Self: 'b;
    type TxToken<'b>
        = Sent<'b>
    where
        Self: 'b;

    fn receive(&mut self, _now: Instant) -> Option<(Received, Sent<'_>)> {
        Some((Received(self.packet.take()?), Sent(self.out)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Sent<'_>> {
        (!self.out.is_full()).then_some(Sent(self.out))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl phy::TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut frame = frame::ipv4_frame(length);
        let result = fill(&mut frame[ETHERNET_HEADER..]);
        self.0.push(frame);
        result
    }
}
