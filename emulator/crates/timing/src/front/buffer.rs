//! The fetch buffer and decode.

use crate::Preset;
use crate::schedule::lane::EACH_SLOT;

/// Most rows of the buffer.
const ROWS: usize = 16;
/// Most slots of a row, including one past its end; a power of two.
const SLOTS: usize = 16;

/// The fetch buffer. Instructions since the last redirect lie in rows of the decode width, in program order. In a cycle, decode takes one group: the
/// instructions of one row that are there and not yet taken. A row that arrives in pieces is therefore decoded in pieces, each of which takes a ROB
/// row.
pub(crate) struct FetchBuffer {
    /// Decode width, in instructions.
    width: u32,
    /// Rows of the buffer.
    rows: u32,
    /// Row of the next instruction since the last redirect.
    row: u32,
    /// Slot of the next instruction in its row, in each of the lanes of [`EACH_SLOT`].
    after_slot: u32,
    /// Slot after the last instruction of the current group, in each of the lanes of [`EACH_SLOT`].
    end: u32,
    /// By slot: how many rows after its first row a full packet that starts in the slot ends.
    reach: [u8; SLOTS],
    /// By row: the cycle in which its last group so far was decoded.
    decoded: [u64; ROWS],
    /// Cycle of the current group.
    cycle: u64,
    /// `after_slot` of the last instruction before the last redirect.
    after_slot_before: u32,
}

snapshot::snapshot!(FetchBuffer {
    row, after_slot, end, decoded, cycle
} keeps {
    width, rows, reach, after_slot_before
});

impl FetchBuffer {
    pub(crate) fn new(preset: &Preset) -> Self {
        let width = preset.decode.width;
        let packet = preset.fetch.bytes / 2;
        let reach = |slot| ((slot as u32 + packet).saturating_sub(1) / width) as u8;
        Self {
            width,
            reach: std::array::from_fn(reach),
            rows: preset.fetch.buffer / width,
            row: 0,
            after_slot: 0,
            end: 0,
            decoded: [0; ROWS],
            cycle: 0,
            after_slot_before: 0,
        }
    }

    /// Empties the buffer.
    pub(crate) fn clear(&mut self) {
        if self.after_slot != 0 {
            self.after_slot_before = self.after_slot;
        }
        self.row = 0;
        self.after_slot = 0;
        self.end = 0;
        self.decoded = [0; ROWS];
    }

    /// Returns the slot of the next instruction.
    #[inline(always)]
    fn slot(&self) -> u32 {
        self.after_slot % 256
    }

    /// Returns the first cycle in which there is room for a whole packet: the row that lies `rows` before its last one
    /// must be decoded.
    #[inline(always)]
    pub(crate) fn room(&self) -> u64 {
        let last = self.row + u32::from(self.reach[self.slot() as usize % SLOTS]);
        match last.checked_sub(self.rows) {
            Some(row) => self.decoded[row as usize % ROWS] + 1,
            None => 0,
        }
    }

    /// Adds a packet that is in the buffer from cycle `there` on: the current group ends before the packet if the group is decoded before that cycle.
    #[inline(always)]
    pub(crate) fn arrives(&mut self, there: u64) {
        self.end = if there > self.cycle { self.after_slot } else { self.end };
    }

    /// Returns true if the next instruction starts a group: the current one is full, or the instruction arrived too
    /// late for it.
    #[inline(always)]
    pub(crate) fn ended(&self) -> bool {
        self.after_slot == self.end
    }

    /// Starts a group; returns the cycle of its decode. Its packet is in the buffer from cycle `there` on; the last instruction
    /// of the group before was dispatched in `dispatched`.
    #[inline(always)]
    pub(crate) fn start(&mut self, there: u64, dispatched: u64) -> u64 {
        if self.slot() == self.width {
            self.row += 1;
            self.after_slot = 0;
        }
        self.end = self.width * EACH_SLOT;
        self.cycle = there.max(self.cycle + 1).max(dispatched);
        self.decoded[self.row as usize % ROWS] = self.cycle;
        self.cycle
    }

    /// Decodes the next instruction of the group; returns the cycle.
    #[inline(always)]
    pub(crate) fn decode(&mut self) -> u64 {
        self.after_slot += EACH_SLOT;
        self.cycle
    }

    /// Returns the slot of the instruction decoded last, plus one, in each of the lanes of [`EACH_SLOT`].
    #[inline(always)]
    pub(crate) fn after_slot(&self) -> u32 {
        self.after_slot
    }

    /// Returns the slot in which the last instruction was decoded, although it may have redirected fetch since.
    #[inline(always)]
    pub(crate) fn last_slot(&self) -> u32 {
        let after_slot = match self.after_slot {
            0 => self.after_slot_before,
            after_slot => after_slot,
        };
        (after_slot % 256).saturating_sub(1)
    }

    /// Returns the cycle of the instruction decoded last.
    #[inline(always)]
    pub(crate) fn cycle(&self) -> u64 {
        self.cycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes `n` instructions of a packet that is there from `there` on; returns their cycles, and which started a
    /// group.
    fn cycles(buffer: &mut FetchBuffer, there: u64, n: u32) -> Vec<(u64, bool)> {
        buffer.arrives(there);
        let one = |_| {
            let new = buffer.ended();
            if new {
                buffer.start(there, 0);
            }
            (buffer.decode(), new)
        };
        (0..n).map(one).collect()
    }

    #[test]
    fn a_row_that_comes_in_pieces_is_decoded_in_pieces() {
        let mut buffer = FetchBuffer::new(&Preset::default());
        assert_eq!(cycles(&mut buffer, 5, 2), [(5, true), (5, false)]);
        let second = [(6, true), (6, false), (7, true), (7, false)];
        assert_eq!(cycles(&mut buffer, 6, 4), second);
        assert_eq!(cycles(&mut buffer, 7, 1), [(7, false)]);
    }

    #[test]
    fn a_full_buffer_holds_packets_back() {
        let mut buffer = FetchBuffer::new(&Preset::default());
        cycles(&mut buffer, 100, 24);
        assert_eq!(buffer.room(), 0);
        cycles(&mut buffer, 100, 1);
        assert_eq!(buffer.room(), 101, "row 0 was decoded in cycle 100");
    }
}
