//! What the bus asks of a device, and what a device may ask of the machine.

use snapshot::Snapshot;

use crate::{Clint, Clock, Exit, Ram};

/// No device answers at this address, or not to an access of this kind. The hart raises a load or store access fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no device answers this access")]
pub struct AccessFault;

/// What a device sees of the machine during a call.
pub struct Cx<'a> {
    /// Current cycle.
    pub now: u64,
    /// Frequencies, to convert cycles to time.
    pub clock: Clock,
    /// Guest memory, for DMA.
    pub ram: &'a mut Ram,
    pub(crate) clint: &'a Clint,
    pub(crate) due: &'a mut u64,
    pub(crate) exit: &'a mut Option<Exit>,
    pub(crate) pause: &'a mut bool,
}

impl Cx<'_> {
    /// Asks for [`Device::event`] at `cycle`, but never before the next cycle. A device has one
    /// event: a later call moves it, `u64::MAX` cancels it.
    pub fn schedule(&mut self, cycle: u64) {
        *self.due = cycle.max(self.now.saturating_add(1));
    }

    /// Cycle of the event that is scheduled, `u64::MAX` if none.
    pub fn scheduled(&self) -> u64 {
        *self.due
    }

    /// Value of `mtime` at `cycle`.
    pub fn mtime(&self, cycle: u64) -> u64 {
        self.clint.mtime(cycle)
    }

    /// Ends the run. The first reason given stays.
    pub fn exit(&mut self, exit: Exit) {
        self.exit.get_or_insert(exit);
    }
}

/// A device on the bus. Offsets are relative to its base and always inside its size; `size` is
/// 1, 2, 4 or 8 bytes and the access does not cross the end of the device. The bus rejects
/// misaligned accesses before they reach a device.
pub trait Device: Snapshot {
    /// A load. The value is zero-extended.
    fn read(&mut self, offset: u64, size: u8, cx: &mut Cx<'_>) -> Result<u64, AccessFault>;

    /// A store. Bits above `size` bytes are zero.
    fn write(
        &mut self,
        offset: u64,
        size: u8,
        value: u64,
        cx: &mut Cx<'_>,
    ) -> Result<(), AccessFault>;

    /// Called once when the device is put on the bus, so that it can schedule its first event.
    fn start(&mut self, _cx: &mut Cx<'_>) {}

    /// The scheduled cycle has come. It is no longer scheduled.
    fn event(&mut self, _cx: &mut Cx<'_>) {}

    /// The cycle of [`Bus::irq_at`](crate::Bus::irq_at) has come: what the device has for memory has to be there before its
    /// interrupt line is sampled.
    fn raised(&mut self, _cx: &mut Cx<'_>) {}

    /// Level of the interrupt line, sampled after every call above and in `Bus::advance`.
    fn irq_level(&self) -> bool {
        false
    }
}
