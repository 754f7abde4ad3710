//! What a virtio device is to its transport.

use snapshot::Snapshot;

/// A request as the driver made it: the readable part of a descriptor chain.
pub struct Request<'a> {
    /// Queue that it came through.
    pub queue: usize,
    /// The readable bytes.
    pub bytes: &'a [u8],
    /// How many bytes a reply can have: the size of the writable part.
    pub room: usize,
    /// Simulated nanoseconds since reset.
    pub nanos: u64,
}

/// A virtio device without its transport.
pub trait Backend: Snapshot {
    /// Virtio device type (section 5).
    fn device_type(&self) -> u32;

    /// Device-specific feature bits.
    fn features(&self) -> u64 {
        0
    }

    /// The driver took these features, of all that the device offers.
    fn negotiated(&mut self, _features: u64) {}

    /// Bytes of the largest request, in each direction.
    fn request_max(&self) -> u64 {
        16 << 20
    }

    /// Number of queues.
    fn queues(&self) -> usize;

    /// The configuration space. Bytes beyond it read as zero.
    fn config(&self) -> Vec<u8> {
        Vec::new()
    }

    /// A write to the configuration space.
    fn write_config(&mut self, _offset: u64, _value: u32) {}

    /// Executes a request and returns the bytes for the start of its writable part (what exceeds the room is cut off).
    /// With `None` the request stays in the queue: it is offered again when the driver notifies the queue and at every
    /// [`Self::poll`].
    fn serve(&mut self, request: Request<'_>) -> Option<Vec<u8>>;

    /// How often [`Self::poll`] is called, per simulated second; 0 = never.
    fn poll_hz(&self) -> u64 {
        0
    }

    /// Looks at what happens outside the machine, at `nanos` after reset (simulated). Requests that
    /// wait are offered again after it.
    fn poll(&mut self, _nanos: u64) {}

    /// True if the run shall pause after the last request. Called once after each request.
    fn pauses(&mut self) -> bool {
        false
    }

    /// The driver reset the device.
    fn reset(&mut self) {}
}

/// Time from a notification to the completion, in cycles. Requests of one device are transferred
/// one after another; the fixed part overlaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Cycles per request, whatever its size; those of several requests overlap.
    pub fixed: u64,
    /// For every 1024 bytes moved, in either direction.
    pub per_kib: u64,
}

impl Latency {
    /// 10 µs and 3.2 GB/s at 3.2 GHz: a fast NVMe drive.
    pub const STORAGE: Self = Self { fixed: 32_000, per_kib: 1024 };
    /// 1 µs and 3.2 GB/s at 3.2 GHz: a device that answers from a buffer.
    pub const BUFFER: Self = Self { fixed: 3_200, per_kib: 1024 };

    pub(super) fn transfer(self, bytes: usize) -> u64 {
        (bytes as u64).saturating_mul(self.per_kib).div_ceil(1024)
    }
}
