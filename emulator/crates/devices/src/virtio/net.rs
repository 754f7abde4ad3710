//! Network device (virtio 1.2, section 5.1): one pair of queues, no offloads.
//!
//! Not modelled: checksum and segmentation offload, merged receive buffers, the control queue. The
//! guest then computes checksums itself, and every frame has a buffer of its own.

use snapshot::{Archive, Snapshot, SnapshotError};

use super::{Backend, Request};

const RECEIVE: usize = 0;
const FEATURE_MAC: u64 = 1 << 5;

const FEATURE_VERSION_1: u64 = 1 << 32;

/// `struct virtio_net_hdr` with `num_buffers` (section 5.1.6).
const HEADER: usize = 12;
/// The header without `num_buffers`, for drivers that did not accept VERSION_1 (section 5.1.6.1).
const LEGACY_HEADER: usize = 10;
/// The header of a received frame: no offloads, one buffer.
const RECEIVED: [u8; HEADER] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];

/// Smallest and largest Ethernet frame, without checksum.
const FRAME_MIN: usize = 14;
const FRAME_MAX: usize = 1514;

/// What a network device is plugged into. Frames are Ethernet frames without preamble and checksum.
///
/// No call may wait for the host. What a network does by its host's clock is not deterministic: a run with one is
/// not either.
pub trait Link {
    /// A frame from the guest, 14 to 1514 bytes of any content. `nanos` is the simulated time since reset.
    fn send(&mut self, frame: &[u8], nanos: u64);

    /// The next frame for the guest.
    fn receive(&mut self) -> Option<Vec<u8>>;

    /// Looks at what happened outside. Called every simulated millisecond.
    fn poll(&mut self, nanos: u64);

    /// The driver reset the device: the guest has forgotten what it had open.
    fn reset(&mut self);
}

/// A network card.
pub struct Net {
    mac: [u8; 6],
    header: usize,
    link: Box<dyn Link>,
}

/// Saving fails: the other end of the link, outside the machine, would lose the state of its connections.
impl Snapshot for Net {
    fn snapshot(&mut self, _archive: &mut Archive<'_>) -> snapshot::Result {
        let what = "a machine with a network cannot be saved".to_owned();
        Err(SnapshotError::Unsaved(what))
    }
}

impl Net {
    /// A card with the address `mac`, plugged into `link`.
    pub fn new(mac: [u8; 6], link: Box<dyn Link>) -> Self {
        Self { mac, header: HEADER, link }
    }

    /// The next frame that fits, with its header. One that does not fit is lost, as on a wire.
    fn receive(&mut self, room: usize) -> Option<Vec<u8>> {
        loop {
            let frame = self.link.receive()?;
            if self.header + frame.len() <= room {
                return Some([&RECEIVED[..self.header], &frame].concat());
            }
        }
    }
}

impl Backend for Net {
    fn device_type(&self) -> u32 {
        1
    }

    fn features(&self) -> u64 {
        FEATURE_MAC
    }

    fn negotiated(&mut self, features: u64) {
        self.header = match features & FEATURE_VERSION_1 {
            0 => LEGACY_HEADER,
            _ => HEADER,
        };
    }

    fn queues(&self) -> usize {
        2
    }

    fn config(&self) -> Vec<u8> {
        self.mac.to_vec()
    }

    fn serve(&mut self, request: Request<'_>) -> Option<Vec<u8>> {
        if request.queue == RECEIVE {
            return self.receive(request.room);
        }
        // The header asks for offloads only, and none is on offer.
        if let Some(frame) = request.bytes.get(self.header..)
            && (FRAME_MIN..=FRAME_MAX).contains(&frame.len())
        {
            self.link.send(frame, request.nanos);
        }
        Some(Vec::new())
    }

    fn poll_hz(&self) -> u64 {
        1000
    }

    fn poll(&mut self, nanos: u64) {
        self.link.poll(nanos);
    }

    fn reset(&mut self) {
        self.link.reset();
    }
}

#[cfg(test)]
mod tests;
