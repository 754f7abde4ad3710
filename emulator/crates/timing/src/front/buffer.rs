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
    /// Row of the next instruction since the last redirect, and its slot there.
    row: u32,
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
            row: 0,
            slot: 0,
            decoded: [0; ROWS],
            cycle: 0,
        }
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.row = 0;
        self.slot = 0;
        self.decoded = [0; ROWS];
    }

    /// First cycle in which there is room for a whole packet: all rows but the last `rows` that it would
    /// reach must be gone.
    #[inline(always)]
    pub fn room(&self) -> u64 {
        let reach = self.slot + self.packet;
        let mut last = self.row;
        let mut left = reach;
        // At most a packet's worth of rows: no division by the width.
        while left > self.width {
            left -= self.width;
            last += 1;
        }
        match (last + 1).checked_sub(self.rows + 1) {
            Some(row) => self.decoded[row as usize % ROWS] + 1,
            None => 0,
        }
    }

    /// Decodes the next instruction, which is in the buffer from cycle `there` on. The group before was
    /// dispatched whole in `dispatched`.
    #[inline(always)]
    pub fn decode(&mut self, there: u64, dispatched: u64, decoded: &mut Decoded) {
        let slot = self.slot;
        let new_row = (slot == 0) | (there > self.cycle);
        let next = there.max(self.cycle + 1).max(dispatched);
        self.cycle = if new_row { next } else { self.cycle };
        self.decoded[self.row as usize % ROWS] = self.cycle;
        let last = slot + 1 == self.width;
        self.slot = if last { 0 } else { slot + 1 };
        self.row += u32::from(last);
        decoded.cycle = self.cycle;
        decoded.new_row = new_row;
        decoded.slot = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_comes_in_pieces_is_decoded_in_pieces() {
        let mut buffer = FetchBuffer::new(&Preset::default());
        let cycles = |b: &mut FetchBuffer, there: u64, n: u32| -> Vec<(u64, bool)> {
            let mut d = Decoded::default();
            let one = |_| {
                b.decode(there, 0, &mut d);
                (d.cycle, d.new_row)
            };
            (0..n).map(one).collect()
        };
        assert_eq!(cycles(&mut buffer, 5, 2), [(5, true), (5, false)]);
        assert_eq!(cycles(&mut buffer, 6, 4), [(6, true), (6, false), (7, true), (7, false)]);
        assert_eq!(cycles(&mut buffer, 7, 1), [(7, false)]);
    }

    #[test]
    fn a_full_buffer_holds_packets_back() {
        let mut buffer = FetchBuffer::new(&Preset::default());
        let mut d = Decoded::default();
        for _ in 0..24 {
            buffer.decode(100, 0, &mut d);
        }
        assert_eq!(buffer.room(), 0);
        buffer.decode(100, 0, &mut d);
        assert_eq!(buffer.room(), 101, "row 0 was decoded in cycle 100");
    }
}
