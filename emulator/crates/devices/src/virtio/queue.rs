//! Split virtqueues (virtio 1.2, section 2.7). Everything that the driver wrote is checked: a
//! queue that breaks the rules is an error, never a loop or an access outside RAM.

use crate::Ram;

/// Maximum number of descriptors in a queue.
pub(super) const QUEUE_MAX: u16 = 256;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
const NO_INTERRUPT: u64 = 1;
const DESCRIPTOR: u64 = 16;

/// The driver broke a rule; the text says which.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RuleViolation(pub &'static str);

/// The registers of a queue, and the device's positions in its rings.
#[derive(Default)]
pub(super) struct Queue {
    /// Number of descriptors.
    pub size: u16,
    pub ready: bool,
    /// Addresses of the three areas.
    pub descriptors: u64,
    pub driver: u64,
    pub device: u64,
    /// Legacy interface: number of the queue's page, 0 if none.
    pub page: u32,
    next_available: u16,
    next_used: u16,
}

struct Descriptor {
    address: u64,
    length: u64,
    flags: u16,
    next: u16,
}

/// A request: pieces of guest memory, all of them checked to be RAM.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chain {
    pub head: u16,
    readable: Vec<(u64, u64)>,
    writable: Vec<(u64, u64)>,
}

snapshot::snapshot!(Queue {
    size,
    ready,
    descriptors,
    driver,
    device,
    page,
    next_available,
    next_used,
});
snapshot::snapshot!(Chain { head, readable, writable });

impl Queue {
    fn has_size(&self) -> bool {
        self.size.is_power_of_two() && self.size <= QUEUE_MAX
    }

    /// False for a loaded state that no driver can cause: ready without a valid size.
    pub(crate) fn is_possible(&self) -> bool {
        !self.ready || self.has_size()
    }

    /// Makes the queue live. Its size must be a power of two up to [`QUEUE_MAX`].
    pub(crate) fn enable(&mut self) -> Result<(), RuleViolation> {
        if !self.has_size() {
            return Err(RuleViolation("queue size is not a power of two up to 256"));
        }
        let areas = [(self.descriptors, 16), (self.driver, 2), (self.device, 4)];
        if areas.iter().any(|&(at, alignment)| !at.is_multiple_of(alignment)) {
            return Err(RuleViolation("queue area is misaligned"));
        }
        (self.next_available, self.next_used, self.ready) = (0, 0, true);
        Ok(())
    }

    /// Makes the queue live as the legacy interface lays it out (section 2.7.2): one area after the other from `page`
    /// on, the device's at the next multiple of `alignment`.
    pub(crate) fn enable_at(
        &mut self,
        page: u32,
        page_size: u32,
        alignment: u32,
    ) -> Result<(), RuleViolation> {
        if !page_size.is_power_of_two() || !alignment.is_power_of_two() {
            return Err(RuleViolation("page size or queue alignment is not a power of two"));
        }
        let size = u64::from(self.size);
        self.page = page;
        self.descriptors = u64::from(page) * u64::from(page_size);
        self.driver = self.descriptors + DESCRIPTOR * size;
        // Flags, index, one entry for each descriptor, and the event index.
        self.device = (self.driver + 6 + 2 * size).next_multiple_of(alignment.into());
        self.enable()
    }

    /// The next request of the driver, which stays in the queue until [`Self::advance`]. It has `most` bytes in each direction at most.
    pub(crate) fn peek(&self, ram: &Ram, most: u64) -> Result<Option<Chain>, RuleViolation> {
        const OUTSIDE_RAM: RuleViolation = RuleViolation("available ring is outside RAM");
        let index = self.field(ram, self.driver, 2).ok_or(OUTSIDE_RAM)? as u16;
        let waiting = index.wrapping_sub(self.next_available);
        if waiting == 0 {
            return Ok(None);
        }
        if waiting > self.size {
            return Err(RuleViolation(
                "more requests are available than the queue has descriptors",
            ));
        }
        let slot = 4 + 2 * u64::from(self.next_available % self.size);
        let head = self.field(ram, self.driver, slot).ok_or(OUTSIDE_RAM)? as u16;
        self.chain(ram, head, most).map(Some)
    }

    /// Takes the request that [`Self::peek`] showed.
    pub(crate) fn advance(&mut self) {
        self.next_available = self.next_available.wrapping_add(1);
    }

    /// Gives a request back to the driver with the number of bytes written to it.
    pub(crate) fn complete(
        &mut self,
        ram: &mut Ram,
        head: u16,
        written: u32,
    ) -> Result<(), RuleViolation> {
        let slot = 4 + 8 * u64::from(self.next_used % self.size);
        let index = self.next_used.wrapping_add(1);
        let element = u64::from(written) << 32 | u64::from(head);
        let mut put = |offset, size, value| {
            let pa = self.device.checked_add(offset)?;
            ram.store(pa, size, value)
        };
        put(slot, 8, element)
            .and_then(|()| put(2, 2, index.into()))
            .ok_or(RuleViolation("used ring is outside RAM"))?;
        self.next_used = index;
        Ok(())
    }

    /// False if the driver suppresses the queue's interrupts.
    pub(crate) fn wants_interrupt(&self, ram: &Ram) -> bool {
        self.field(ram, self.driver, 0).is_none_or(|flags| flags & NO_INTERRUPT == 0)
    }

    fn field(&self, ram: &Ram, area: u64, offset: u64) -> Option<u64> {
        ram.load(area.checked_add(offset)?, 2)
    }

    fn chain(&self, ram: &Ram, head: u16, most: u64) -> Result<Chain, RuleViolation> {
        let mut chain = Chain { head, readable: Vec::new(), writable: Vec::new() };
        let first = descriptor(ram, self.descriptors, head, self.size)?;
        if first.flags & INDIRECT == 0 {
            chain.walk(ram, (self.descriptors, self.size), head, most)?;
            return Ok(chain);
        }
        if first.flags & NEXT != 0 {
            return Err(RuleViolation("indirect descriptor has a successor"));
        }
        let entries = first.length / DESCRIPTOR;
        if !first.length.is_multiple_of(DESCRIPTOR) || !(1..=QUEUE_MAX.into()).contains(&entries) {
            return Err(RuleViolation("indirect table has a bad length"));
        }
        chain.walk(ram, (first.address, entries as u16), 0, most)?;
        Ok(chain)
    }
}

impl Chain {
    /// Adds the pieces of a chain in a table, which has an address and a number of descriptors.
    fn walk(
        &mut self,
        ram: &Ram,
        (table, size): (u64, u16),
        head: u16,
        most: u64,
    ) -> Result<(), RuleViolation> {
        // More than all memory is pieces that overlap.
        let most = most.min(ram.size());
        let mut index = head;
        let mut totals = [0; 2];
        for _ in 0..size {
            let piece = descriptor(ram, table, index, size)?;
            if piece.flags & INDIRECT != 0 {
                return Err(RuleViolation("indirect descriptor inside a chain"));
            }
            if !ram.contains(piece.address, piece.length) {
                return Err(RuleViolation("buffer is outside RAM"));
            }
            let write = piece.flags & WRITE != 0;
            if !write && !self.writable.is_empty() {
                return Err(RuleViolation("readable buffer after a writable one"));
            }
            totals[usize::from(write)] += piece.length;
            if totals[usize::from(write)] > most {
                return Err(RuleViolation("request is larger than the device or the memory takes"));
            }
            let pieces = if write { &mut self.writable } else { &mut self.readable };
            pieces.push((piece.address, piece.length));
            if piece.flags & NEXT == 0 {
                return Ok(());
            }
            index = piece.next;
        }
        Err(RuleViolation("chain of descriptors does not end"))
    }

    /// Size of the writable part.
    pub(crate) fn room(&self) -> usize {
        self.writable.iter().map(|&(_, length)| length as usize).sum()
    }

    /// The bytes of the readable part.
    pub(crate) fn gather(&self, ram: &Ram) -> Vec<u8> {
        let pieces = self.readable.iter().filter_map(|&(pa, length)| ram.slice(pa, length));
        pieces.flatten().copied().collect()
    }

    /// Writes to the writable part; returns how many bytes found room.
    pub(crate) fn scatter(&self, ram: &mut Ram, bytes: &[u8]) -> u32 {
        let mut rest = bytes;
        for &(pa, length) in &self.writable {
            let (now, later) = rest.split_at(rest.len().min(length as usize));
            if ram.write(pa, now).is_none() {
                break;
            }
            rest = later;
        }
        (bytes.len() - rest.len()) as u32
    }
}

fn descriptor(ram: &Ram, table: u64, index: u16, size: u16) -> Result<Descriptor, RuleViolation> {
    if index >= size {
        return Err(RuleViolation("descriptor number is beyond the table"));
    }
    let at = table.checked_add(DESCRIPTOR * u64::from(index));
    let words = at.and_then(|at| Some((ram.load(at, 8)?, ram.load(at.checked_add(8)?, 8)?)));
    let (address, rest) = words.ok_or(RuleViolation("descriptor table is outside RAM"))?;
    Ok(Descriptor {
        address,
        length: rest & 0xffff_ffff,
        flags: (rest >> 32) as u16,
        next: (rest >> 48) as u16,
    })
}
