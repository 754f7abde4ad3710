//! Where fetch is: the bytes of the present packet.

use isa::{PathSegment, SegmentLengths};

use crate::mem::LINE_BITS;

/// The present packet: bytes [`start`, `end`) of code, and how many instructions still fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub start: u64,
    pub end: u64,
    pub room: u32,
    /// Where the next instruction must end to belong to the packet: `end`, or 0 if something closed it.
    pub limit: u64,
}

snapshot::snapshot!(Position { start, end, room, limit });

impl Position {
    /// Starts a packet of up to `bytes` with the instruction of `len` bytes at `pc`; returns true if the instruction begins before the packet. The
    /// caller says how many instructions have room.
    #[inline(always)]
    pub(super) fn start_packet(&mut self, pc: u64, len: u8, bytes: u64) -> bool {
        let end = pc.wrapping_add(u64::from(len));
        let sequential = self.limit != 0;
        let bank = bytes / 2;
        self.start = if sequential && end > self.end { self.end } else { pc & !(bank - 1) };
        self.end = self.packet_end(bytes);
        let straddles = end > self.end;
        if straddles {
            // The instruction belongs to the packet that has its second half.
            self.start = self.end;
            self.end = self.packet_end(bytes);
        }
        self.limit = self.end;
        straddles
    }

    /// Returns the end of a packet: it has two banks, or one in the last bank of a line (`ifu/frontend.scala:153`). The end of the address space is
    /// taken to be a byte before it, since no instruction would end before address 0.
    #[inline(always)]
    fn packet_end(&self, bytes: u64) -> u64 {
        let line_end = (self.start | ((1 << LINE_BITS) - 1)).saturating_add(1);
        self.start.saturating_add(bytes).min(line_end)
    }
}

/// Walks that are remembered; a power of two.
const WALKS: usize = 2048;
/// Distance in bytes from the start of a segment to the limit of the packet before, from which on no remembered walk is used.
const FAR: u64 = 1 << 16;

/// The packets of a segment of the path that begins in a certain way.
#[derive(Clone, Copy, Default)]
struct Walk {
    start: u64,
    lengths: SegmentLengths,
    /// Distance to the limit and room of the packet before, which decide the walk; 0: a packet has to be started.
    from: u64,
    /// How many packets are started.
    packets: u32,
    /// The position after the last instruction.
    position: Position,
}

/// Finds the packets of segments: those that were walked before are remembered, since programs run in loops.
pub(super) struct Walks {
    known: Box<[Walk]>,
    packet_bytes: u64,
    packet_insts: u32,
}

impl Walks {
    pub(super) fn new(packet_bytes: u64, packet_insts: u32) -> Self {
        Self { known: vec![Walk::default(); WALKS].into(), packet_bytes, packet_insts }
    }

    /// Goes on to the packet that has the last instruction of a segment; returns how many packets were started.
    #[inline(always)]
    pub(super) fn walk(&mut self, position: &mut Position, segment: &PathSegment) -> u32 {
        let (start, lengths) = (segment.start(), segment.lengths);
        let from = match position.limit {
            0 => 0,
            limit => 1 << 63 | limit.wrapping_sub(start) << 32 | u64::from(position.room),
        };
        let is_far = position.limit != 0 && position.limit.wrapping_sub(start) >= FAR;
        let hash = (start >> 1) ^ (start >> 12) ^ from >> 32 ^ from << 4;
        let known = &mut self.known[hash as usize % WALKS];
        if (known.start, known.lengths, known.from) != (start, lengths, from) || is_far {
            let mut after = *position;
            let packets = walk(&mut after, segment, self.packet_bytes, self.packet_insts);
            *known = Walk { start, lengths, from, packets, position: after };
        }
        if known.packets != 0 {
            *position = known.position;
        } else {
            position.room = known.position.room;
        }
        known.packets
    }
}

/// Walks a segment packet by packet.
#[cold]
#[inline(never)]
fn walk(position: &mut Position, segment: &PathSegment, bytes: u64, insts: u32) -> u32 {
    let (lengths, mut pc, mut packets) = (segment.lengths, segment.start(), 0);
    for number in 0..lengths.count() {
        let len = lengths.len_at(number);
        let end = pc.wrapping_add(len.into());
        if end > position.limit || position.room == 0 {
            position.start_packet(pc, len, bytes);
            position.room = insts;
            packets += 1;
        }
        position.room -= 1;
        pc = end;
    }
    packets
}
