//! The state of execution units that the issue schedule does not have.

use crate::micro_op::{PortMap, port};
use crate::schedule::lane;

/// The unpipelined units.
pub(crate) struct Units {
    /// Cycles from which on they take an operation.
    pub divider_free: u64,
    pub fp_divider_free: u64,
    /// The port whose ALU writes back with the multiplier.
    pub mul_port: u32,
    /// Port of FP data on its way to the store queue.
    pub fp_data: u32,
    pub issued: Issued,
}

/// What issued while somebody asked for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Issued {
    /// Micro-ops by port.
    pub ports: [u64; port::COUNT],
    /// Cycles of slots in use of the memory, integer and FP issue queue, over all slots.
    pub queues: [u64; lane::QUEUES],
}

snapshot::snapshot!(Issued { ports, queues });

impl Issued {
    /// Counts a micro-op that issued to the port with this bit, and gave back its slot of the queue with this lane
    /// `waited` cycles after it was dispatched.
    #[inline(always)]
    pub(crate) fn count(&mut self, port: u32, queue: u32, waited: u64) {
        self.ports[port.trailing_zeros() as usize % port::COUNT] += 1;
        self.queues[queue.trailing_zeros() as usize / 8 % lane::QUEUES] += waited;
    }
}

snapshot::snapshot!(Units { divider_free, fp_divider_free, issued } keeps { mul_port, fp_data });

impl Units {
    pub(crate) fn new(ports: &PortMap) -> Self {
        Self {
            divider_free: 0,
            fp_divider_free: 0,
            mul_port: ports.mul,
            issued: Issued::default(),
            fp_data: ports.fp0,
        }
    }
}
