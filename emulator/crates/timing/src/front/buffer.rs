//! The fetch buffer and decode.

use super::Decoded;
use crate::Preset;

/// Limit of rows that the buffer remembers.
const ROWS: usize = 16;

/// Instructions lie in rows of the decode width, in the order in which they came since the last
/// redirect. Decode takes from one row at a time: what of it is there and not yet taken is one group.
/// So a row that arrives in pieces is decoded in pieces, and each piece takes a ROB row.
pub(super) struct FetchBuffer {
    width: u32,
    rows: u32,
    /// Instructions that a packet may bring: so many must fit before one enters.
    packet: u32,
    /// Position of the next instruction since the last redirect, and its slot of the row.
    position: u32,
    slot: u32,
    /// By row: the cycle in which its last instruction so far was decoded.
    decoded: [u64; ROWS],
    /// Cycle of the last group.
    cycle: u64,
}

impl FetchBuffer {
    pub fn new(preset: &Preset) -> Self {
        let width = preset.decode.width;
        Self {
            width,
            rows: preset.fetch.buffer / width,
            packet: preset.fetch.bytes / 2,
            position: 0,
            slot: 0,
            decoded: [0; ROWS],
            cycle: 0,
        }
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.position = 0;
        self.slot = 0;
        self.decoded = [0; ROWS];
    }

    /// First cycle in which there is room for a whole packet.
    pub fn room(&self) -> u64 {
        let over = (self.position + self.packet).saturating_sub(self.rows * self.width);
        // All rows before this one must be gone.
        match over.div_ceil(self.width) {
            0 => 0,
            row => self.decoded[(row - 1) as usize % ROWS] + 1,
        }
    }

    /// Decodes the next instruction, which is in the buffer from cycle `there` on. The group before was
    /// dispatched whole in `dispatched`.
    #[inline(always)]
    pub fn decode(&mut self, there: u64, dispatched: u64) -> Decoded {
        let slot = self.slot;
        let new_row = slot == 0 || there > self.cycle;
        if new_row {
            self.cycle = there.max(self.cycle + 1).max(dispatched);
        }
        let row = self.position / self.width;
        self.decoded[row as usize % ROWS] = self.cycle;
        self.position += 1;
        self.slot = if slot + 1 == self.width { 0 } else { slot + 1 };
        Decoded { cycle: self.cycle, new_row, slot, ..Decoded::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_comes_in_pieces_is_decoded_in_pieces() {
        let mut buffer = FetchBuffer::new(&Preset::default());
        let cycles = |b: &mut FetchBuffer, there: u64, n: u32| -> Vec<(u64, bool)> {
            (0..n).map(|_| b.decode(there, 0)).map(|d| (d.cycle, d.new_row)).collect()
        };
        assert_eq!(cycles(&mut buffer, 5, 2), [(5, true), (5, false)]);
        assert_eq!(cycles(&mut buffer, 6, 4), [(6, true), (6, false), (7, true), (7, false)]);
        assert_eq!(cycles(&mut buffer, 7, 1), [(7, false)]);
    }

    #[test]
    fn a_full_buffer_holds_packets_back() {
        let mut buffer = FetchBuffer::new(&Preset::default());
        for _ in 0..24 {
            buffer.decode(100, 0);
        }
        assert_eq!(buffer.room(), 0);
        buffer.decode(100, 0);
        assert_eq!(buffer.room(), 101, "row 0 was decoded in cycle 100");
    }
}
