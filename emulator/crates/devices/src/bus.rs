//! The bus: guest memory, the interrupt controllers and every other device, under one clock.

use isa::{Interrupt, SharedCycle};
use snapshot::{Archive, Snapshot};

use crate::clint::{CLINT_SIZE, Clint};
use crate::htif::Htif;
use crate::memory_map::{CLINT_BASE, PLIC_BASE};
use crate::plic::{PLIC_SIZE, Plic};
use crate::{AccessFault, Clock, Cx, Device, Ram, RamError};

/// How the guest ended the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The guest switched the machine off, with a status (0 = success).
    PowerOff(u32),
    /// The guest asked for a reset.
    Reset,
    /// The guest wrote an exit code to `tohost`.
    Host(u64),
}

/// A device and its address range.
struct MappedDevice {
    base: u64,
    size: u64,
    irq: Option<u32>,
    /// Cycle of the device's scheduled event; `u64::MAX` if none.
    due: u64,
    device: Box<dyn Device>,
}

/// Guest memory and devices. The hart sets [`Bus::now`] before an access.
pub struct Bus {
    /// Guest memory.
    pub ram: Ram,
    /// Current cycle.
    pub now: u64,
    /// Set when the guest ended the run.
    pub exit: Option<Exit>,
    /// Set by a device that asks the run to pause; the hart clears it when it does.
    pub pause: bool,
    /// Earliest cycle at which a unit outside the bus (the TIP unit) raised its interrupt line while instructions
    /// executed, `u64::MAX` if none. The hart polls and resets it; [`Bus::advance`] then samples the line.
    pub irq_at: SharedCycle,
    clock: Clock,
    clint: Clint,
    plic: Plic,
    slots: Vec<MappedDevice>,
    htif: Option<Htif>,
}

snapshot::snapshot!(MappedDevice { due, device } keeps { base, size, irq });

/// What guest memory holds is saved elsewhere. `exit` and `pause` are not saved: between runs neither is set.
impl Snapshot for Bus {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self { ram, now, exit: _, pause: _, irq_at, clock: _, clint, plic, slots, htif: _ } =
            self;
        now.snapshot(archive)?;
        irq_at.snapshot(archive)?;
        clint.snapshot(archive)?;
        plic.snapshot(archive)?;
        for slot in slots {
            archive.same("device", &format!("{:#x}", slot.base))?;
            slot.snapshot(archive)?;
        }
        archive.same("device", "none")?;
        ram.snapshot_contention(archive)
    }
}

/// Two devices claim the same addresses.
#[derive(Debug, thiserror::Error)]
#[error("device at {base:#x} (size {size:#x}) overlaps the one at {other:#x}")]
pub struct Overlap {
    base: u64,
    size: u64,
    other: u64,
}

impl Bus {
    /// A bus with `ram_size` bytes of memory, CLINT and PLIC for `harts` harts.
    pub fn new(ram_size: u64, harts: usize, clock: Clock) -> Result<Self, RamError> {
        Ok(Self {
            ram: Ram::new(ram_size)?,
            now: 0,
            exit: None,
            pause: false,
            irq_at: SharedCycle::new(u64::MAX),
            clock,
            clint: Clint::new(harts, clock),
            plic: Plic::new(harts),
            slots: Vec::new(),
            htif: None,
        })
    }

    /// Puts a device at `base`, with its interrupt line on PLIC source `irq`.
    pub fn add_device(
        &mut self,
        base: u64,
        size: u64,
        irq: Option<u32>,
        device: Box<dyn Device>,
    ) -> Result<(), Overlap> {
        let fixed =
            [(CLINT_BASE, CLINT_SIZE), (PLIC_BASE, PLIC_SIZE), (crate::RAM_BASE, self.ram.size())];
        let end = base.saturating_add(size);
        for (other, length) in fixed.into_iter().chain(self.slots.iter().map(|s| (s.base, s.size)))
        {
            if base < other + length && other < end {
                return Err(Overlap { base, size, other });
            }
        }
        self.slots.push(MappedDevice { base, size, irq, due: u64::MAX, device });
        let last = self.slots.len() - 1;
        self.with_device(last, self.now, |device, cx| device.start(cx));
        Ok(())
    }

    /// Attaches the host-target interface, and sets [`Ram::WATCHED`] on the pages of its words.
    pub fn attach_htif(&mut self, htif: Htif) {
        for word in htif.words() {
            self.ram.set_page_flags(word, Ram::WATCHED);
        }
        self.htif = Some(htif);
    }

    /// A load from device registers. `size` is 1, 2, 4 or 8.
    pub fn load(&mut self, pa: u64, size: u8) -> Result<u64, AccessFault> {
        let now = self.now;
        aligned(pa, size)?;
        if let Some(offset) = window(pa, CLINT_BASE, CLINT_SIZE) {
            return self.clint.read(offset, size, now);
        }
        if let Some(offset) = window(pa, PLIC_BASE, PLIC_SIZE) {
            return self.plic.read(offset, size);
        }
        let (slot, offset) = self.find(pa, size)?;
        self.with_device(slot, now, |device, cx| device.read(offset, size, cx))
    }

    /// A store to device registers. `size` is 1, 2, 4 or 8.
    pub fn store(&mut self, pa: u64, size: u8, value: u64) -> Result<(), AccessFault> {
        let now = self.now;
        aligned(pa, size)?;
        let value = value & u64::MAX >> (64 - 8 * u32::from(size));
        if let Some(offset) = window(pa, CLINT_BASE, CLINT_SIZE) {
            return self.clint.write(offset, size, value, now);
        }
        if let Some(offset) = window(pa, PLIC_BASE, PLIC_SIZE) {
            return self.plic.write(offset, size, value);
        }
        let (slot, offset) = self.find(pa, size)?;
        self.with_device(slot, now, |device, cx| device.write(offset, size, value, cx))
    }

    /// Sets the current cycle, runs the events that are due, each at its own cycle and in order of
    /// time (then of address), and samples all interrupt lines.
    pub fn advance(&mut self, cycle: u64) {
        self.now = cycle;
        while let Some((due, slot)) = self.first_due()
            && due <= cycle
        {
            self.slots[slot].due = u64::MAX;
            self.with_device(slot, due, |device, cx| device.event(cx));
        }
        if self.irq_at.get() <= cycle {
            for slot in 0..self.slots.len() {
                self.with_device(slot, cycle, |device, cx| device.raised(cx));
            }
        }
        for slot in 0..self.slots.len() {
            self.sample(slot);
        }
    }

    /// Earliest cycle after `now` at which something happens by itself: a device's event or a
    /// timer interrupt. `u64::MAX` if nothing ever does.
    #[inline]
    pub fn next_event(&self) -> u64 {
        let devices = self.first_due().map_or(u64::MAX, |(due, _)| due);
        devices.min(self.clint.next_event(self.now))
    }

    /// Levels of a hart's interrupt lines at `now`, as bits of `mip`: MSIP, MTIP, MEIP, SEIP.
    #[inline]
    pub fn mip(&self, hart: usize) -> u64 {
        let line = |level: bool, interrupt: Interrupt| u64::from(level) << interrupt as u32;
        line(self.clint.msip(hart), Interrupt::MachineSoftware)
            | line(self.clint.mtip(hart, self.now), Interrupt::MachineTimer)
            | line(self.plic.interrupt(2 * hart), Interrupt::MachineExternal)
            | line(self.plic.interrupt(2 * hart + 1), Interrupt::SupervisorExternal)
    }

    /// Value of `mtime` at `cycle`.
    #[inline]
    pub fn mtime(&self, cycle: u64) -> u64 {
        self.clint.mtime(cycle)
    }

    /// First cycle at which `mtime` reaches `mtime`; `u64::MAX` if never.
    #[inline]
    pub fn cycle_of_mtime(&self, mtime: u64) -> u64 {
        self.clint.cycle_of_mtime(mtime)
    }

    /// The core's and the timebase's frequency.
    #[inline]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The hart stored to a page with the flag [`Ram::WATCHED`], at or near `pa`; call it after
    /// the store is done.
    pub fn watched_store(&mut self, _pa: u64) {
        let Some(htif) = &mut self.htif else { return };
        let before = htif.unanswered();
        if let Some(exit) = htif.poll(&mut self.ram) {
            self.exit.get_or_insert(exit);
        }
        self.pause |= before.is_none() && htif.unanswered().is_some();
    }

    /// [`Htif::unanswered`]. A run pauses (`RunExit::Paused`) when it becomes `Some`.
    pub fn unanswered(&self) -> Option<u64> {
        self.htif.as_ref().and_then(Htif::unanswered)
    }

    fn find(&self, pa: u64, size: u8) -> Result<(usize, u64), AccessFault> {
        self.slots
            .iter()
            .enumerate()
            .find_map(|(n, slot)| {
                let offset = window(pa, slot.base, slot.size)?;
                (offset + u64::from(size) <= slot.size).then_some((n, offset))
            })
            .ok_or(AccessFault)
    }

    fn first_due(&self) -> Option<(u64, usize)> {
        let slots = self.slots.iter().enumerate();
        slots.map(|(n, slot)| (slot.due, n)).min().filter(|&(due, _)| due != u64::MAX)
    }

    fn with_device<R>(
        &mut self,
        slot: usize,
        now: u64,
        call: impl FnOnce(&mut dyn Device, &mut Cx<'_>) -> R,
    ) -> R {
        let MappedDevice { device, due, .. } = &mut self.slots[slot];
        let (ram, exit, pause) = (&mut self.ram, &mut self.exit, &mut self.pause);
        ram.set_device_writes(true);
        let result = call(
            device.as_mut(),
            &mut Cx { now, clock: self.clock, ram, clint: &self.clint, due, exit, pause },
        );
        self.ram.set_device_writes(false);
        self.sample(slot);
        result
    }

    fn sample(&mut self, slot: usize) {
        let slot = &self.slots[slot];
        if let Some(irq) = slot.irq {
            self.plic.set_level(irq, slot.device.irq_level());
        }
    }
}

/// The offset of `pa` in a window.
fn window(pa: u64, base: u64, size: u64) -> Option<u64> {
    pa.checked_sub(base).filter(|&offset| offset < size)
}

/// Devices take naturally aligned accesses only; a misaligned one is an access fault.
fn aligned(pa: u64, size: u8) -> Result<(), AccessFault> {
    if matches!(size, 1 | 2 | 4 | 8) && pa.is_multiple_of(u64::from(size)) {
        Ok(())
    } else {
        Err(AccessFault)
    }
}

#[cfg(test)]
mod tests;
