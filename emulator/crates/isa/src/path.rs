//! The path of a program, as a log that is quick to write: straight pieces of code, and the control transfers (branches and jumps) that end them.

use crate::{DecodedInst, InstClass};

/// What an instruction does to the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferKind {
    /// Conditional branch.
    Branch = 1,
    /// Direct jump.
    Direct = 2,
    /// Direct jump that writes the return address register.
    DirectCall = 3,
    /// Indirect jump.
    Indirect = 4,
    /// Indirect jump that writes the return address register.
    IndirectCall = 5,
    /// Indirect jump to a link register that writes no register.
    Return = 6,
    /// Serialising instruction or trap: fetch starts again behind it.
    Flush = 7,
}

impl TransferKind {
    /// Returns the kind of an instruction as BOOM marks calls and returns (`BranchDecode`, `exu/decode.scala`); `None` for one after which
    /// fetch always goes on with the next.
    #[inline]
    pub fn of(inst: &DecodedInst) -> Option<Self> {
        let calls = inst.rd == 1;
        let returns = !(1..64).contains(&inst.rd) && matches!(inst.rs1, 1 | 5);
        match inst.class {
            InstClass::Branch => Some(Self::Branch),
            InstClass::Jal if calls => Some(Self::DirectCall),
            InstClass::Jal => Some(Self::Direct),
            InstClass::Jalr if calls => Some(Self::IndirectCall),
            InstClass::Jalr if returns => Some(Self::Return),
            InstClass::Jalr => Some(Self::Indirect),
            class if class.serialises() => Some(Self::Flush),
            _ => None,
        }
    }

    /// Returns the kind with a number of three bits.
    #[inline]
    fn from_bits(bits: u64) -> Option<Self> {
        match bits & 7 {
            1 => Some(Self::Branch),
            2 => Some(Self::Direct),
            3 => Some(Self::DirectCall),
            4 => Some(Self::Indirect),
            5 => Some(Self::IndirectCall),
            6 => Some(Self::Return),
            7 => Some(Self::Flush),
            _ => None,
        }
    }
}

/// Instructions that were executed one after the other, the last of which may be a control transfer. Translated code writes the fields.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PathSegment {
    /// Virtual address of the first instruction; bit 0: the last one is a branch that was taken.
    pub start_and_taken: u64,
    /// Virtual address of the target of a control transfer (of a branch, whether or not it is taken), plus the [tag](Self::tag) of its kind. Only addresses
    /// of at most 61 bits, sign-extended, are read back as they were; no others can be executed.
    pub target_and_tag: u64,
    /// Lengths of the instructions; see [`SegmentLengths`].
    pub lengths: SegmentLengths,
}

/// Lengths of the instructions of a [`PathSegment`]: a bit for each instruction, from bit 0 up, which is 1 if the instruction has four bytes. Another
/// 1 above the last of these bits marks the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct SegmentLengths(u64);

impl Default for SegmentLengths {
    fn default() -> Self {
        Self(1)
    }
}

impl SegmentLengths {
    /// Most instructions of a segment.
    pub const MOST: usize = 63;

    /// Returns the lengths with those of another instruction, of `len` bytes. There must be room for it.
    #[inline]
    #[must_use]
    pub fn with(self, len: u8) -> Self {
        let count = self.count();
        let end = 1 << count;
        Self(self.0 ^ end | u64::from(len == 4) << count | end << 1)
    }

    /// Returns how many instructions there are.
    #[inline]
    pub fn count(self) -> u32 {
        self.0.ilog2()
    }

    /// Returns the bytes of the first `count` instructions.
    #[inline]
    pub fn bytes(self, count: u32) -> u64 {
        let long = self.0 & ((1 << count) - 1);
        u64::from(2 * (count + long.count_ones()))
    }

    /// Returns the length of an instruction in bytes.
    #[inline]
    pub fn len_at(self, number: u32) -> u8 {
        if self.0 >> number & 1 != 0 { 4 } else { 2 }
    }

    /// Appends as many lengths of `next` as there is room for; returns the others.
    #[inline]
    fn join(&mut self, next: Self) -> Self {
        let (count, more) = (self.count(), next.count());
        let joined = more.min(Self::MOST as u32 - count);
        // The 1 that marks the end moves up.
        let moved = next.0 & ((1 << joined) - 1) | 1 << joined;
        self.0 = self.0 ^ 1 << count | moved << count;
        Self(next.0 >> joined)
    }

    /// Returns the number that stands for the lengths, for translated code.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Returns the lengths that a number stands for; `None` if it stands for none, as 0 does.
    pub fn from_bits(bits: u64) -> Option<Self> {
        (bits != 0).then_some(Self(bits))
    }
}

impl PathSegment {
    const TAG_SHIFT: u32 = 61;

    /// Returns the segment of one instruction of `len` bytes at `pc`. `target`: where a branch goes if it is taken, a jump in any case, and
    /// where fetch goes on after a flush.
    #[inline]
    pub fn one(kind: Option<TransferKind>, pc: u64, len: u8, taken: bool, target: u64) -> Self {
        Self {
            start_and_taken: pc | u64::from(taken),
            target_and_tag: target.wrapping_add(Self::tag(kind)),
            lengths: SegmentLengths::default().with(len),
        }
    }

    /// Returns the trap of the instruction at `pc` as a segment.
    #[inline]
    pub fn trap(pc: u64, handler: u64) -> Self {
        Self::one(Some(TransferKind::Flush), pc, 2, false, handler)
    }

    /// Appends the instructions of `next`, the segment that was executed next, if they follow in memory. Returns the part of `next` that was not
    /// appended, because it lies elsewhere or there is no more room.
    #[inline]
    #[must_use]
    pub fn join(&mut self, next: Self) -> Option<Self> {
        let end = self.start().wrapping_add(self.lengths.bytes(self.lengths.count()));
        if self.kind().is_some() || end != next.start() {
            return Some(next);
        }
        let before = self.lengths.count();
        let left = self.lengths.join(next.lengths);
        if left.count() == 0 {
            self.start_and_taken = self.start() | u64::from(next.taken());
            self.target_and_tag = next.target_and_tag;
            return None;
        }
        let joined = next.lengths.bytes(self.lengths.count() - before);
        let start_and_taken = next.start_and_taken.wrapping_add(joined);
        Some(Self { start_and_taken, lengths: left, ..next })
    }

    /// Returns the part of [`Self::target_and_tag`] that stands for the kind of the last instruction.
    pub const fn tag(kind: Option<TransferKind>) -> u64 {
        match kind {
            Some(kind) => (kind as u64) << Self::TAG_SHIFT,
            None => 0,
        }
    }

    /// Returns the kind of the last instruction; `None` if the next one follows it in memory in any case.
    #[inline]
    pub fn kind(self) -> Option<TransferKind> {
        TransferKind::from_bits(self.target_and_tag.wrapping_sub(self.target()) >> Self::TAG_SHIFT)
    }

    /// Returns the address of the first instruction.
    #[inline]
    pub fn start(self) -> u64 {
        self.start_and_taken & !1
    }

    /// Returns true if the last instruction is a branch that was taken.
    #[inline]
    pub fn taken(self) -> bool {
        self.start_and_taken & 1 != 0
    }

    /// Returns the target of a control transfer, whether or not a branch was taken.
    #[inline]
    pub fn target(self) -> u64 {
        let unused = u64::BITS - Self::TAG_SHIFT;
        ((self.target_and_tag << unused) as i64 >> unused) as u64
    }
}

impl std::fmt::Debug for PathSegment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} from {:#x}", self.lengths.count(), self.start())?;
        match self.kind() {
            Some(kind) => write!(f, ", {kind:?} to {:#x} ({})", self.target(), self.taken()),
            None => Ok(()),
        }
    }
}

/// The segments of a path in the order in which a hart executed them, up to a number.
#[derive(Debug)]
pub struct PathLog {
    segments: Box<[PathSegment]>,
    len: usize,
}

impl Default for PathLog {
    fn default() -> Self {
        Self { segments: vec![PathSegment::default(); Self::CAPACITY].into(), len: 0 }
    }
}

impl PathLog {
    /// Most segments that there is room for.
    const CAPACITY: usize = 12 << 10;
    /// Number of segments from which on the log should be emptied. The rest is room for what translated code logs until it looks again.
    const FULL: usize = 4 << 10;

    /// Adds a segment; nothing is added where there is no room.
    #[inline]
    pub fn push(&mut self, segment: PathSegment) {
        if let Some(place) = self.segments.get_mut(self.len) {
            *place = segment;
            self.len += 1;
        }
    }

    /// Returns true if the log should be emptied.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len >= Self::FULL
    }

    /// Returns how many more segments there is room for: many unless the log [is full](Self::is_full).
    pub fn room(&self) -> usize {
        self.segments.len() - self.len
    }

    /// Returns the segments.
    pub fn segments(&self) -> &[PathSegment] {
        &self.segments[..self.len]
    }

    /// Returns how many segments there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Empties the log.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns the address of the first segment, for translated code, which writes behind the last one and then [says](Self::set_len) how many
    /// there are.
    pub fn address(&mut self) -> *mut u8 {
        self.segments.as_mut_ptr().cast()
    }

    /// Says how many segments there are, as translated code has written some.
    pub fn set_len(&mut self, len: usize) {
        self.len = len.min(self.segments.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_keeps_what_it_is_given() {
        let kinds = [
            None,
            Some(TransferKind::Branch),
            Some(TransferKind::Direct),
            Some(TransferKind::DirectCall),
            Some(TransferKind::Indirect),
            Some(TransferKind::IndirectCall),
            Some(TransferKind::Return),
            Some(TransferKind::Flush),
        ];
        for kind in kinds {
            for (pc, target) in [
                (0x8000_0ffe, 0x8000_0000),
                (0xffff_ffff_8000_0ffe, 0xffff_ffff_ffff_fffe),
                (0x00ff_ffff_ffff_fffe, 0),
                (0xff00_0000_0000_0000, 0x00ff_ffff_ffff_fffe),
            ] {
                for (len, taken) in [(2, true), (4, false), (4, true)] {
                    let segment = PathSegment::one(kind, pc, len, taken, target);
                    assert_eq!((segment.kind(), segment.start()), (kind, pc));
                    assert_eq!((segment.taken(), segment.target()), (taken, target));
                    assert_eq!(segment.lengths.bytes(1), u64::from(len));
                }
            }
        }
    }

    #[test]
    fn segments_that_follow_each_other_are_joined() {
        let branch = Some(TransferKind::Branch);
        let mut joined = PathSegment::one(None, 0x1000, 2, false, 0);
        assert_eq!(joined.join(PathSegment::one(None, 0x1002, 4, false, 0)), None);
        let elsewhere = PathSegment::one(branch, 0x1002, 4, true, 0x2000);
        assert_eq!(joined.join(elsewhere), Some(elsewhere));
        assert_eq!(joined.join(PathSegment::one(branch, 0x1006, 4, true, 0x2000)), None);
        let lengths = [2, 4, 4].iter().fold(SegmentLengths::default(), |all, len| all.with(*len));
        let PathSegment { target_and_tag, .. } = elsewhere;
        assert_eq!(joined, PathSegment { start_and_taken: 0x1001, target_and_tag, lengths });
        // Nothing follows a branch in its segment.
        let after = PathSegment::one(None, 0x100a, 2, false, 0);
        assert_eq!(joined.join(after), Some(after));
    }

    #[test]
    fn segments_are_joined_as_far_as_there_is_room() {
        let lengths = |from: usize, to: usize| {
            let len = |n: usize| if n.is_multiple_of(3) { 4 } else { 2 };
            (from..to).fold(SegmentLengths::default(), |all, n| all.with(len(n)))
        };
        for (first, second) in [(1, 63), (40, 60), (62, 2), (63, 5)] {
            let tag = PathSegment::tag(Some(TransferKind::Direct)) + 0x1000;
            let mut before = PathSegment {
                start_and_taken: 0x1000,
                target_and_tag: 0,
                lengths: lengths(0, first),
            };
            let from = 0x1000 + before.lengths.bytes(first as u32);
            let next = PathSegment {
                start_and_taken: from | 1,
                target_and_tag: tag,
                lengths: lengths(first, first + second),
            };
            let rest = before.join(next).unwrap();
            assert_eq!((before.start_and_taken, before.target_and_tag), (0x1000, 0));
            assert_eq!(before.lengths, lengths(0, SegmentLengths::MOST));
            let joined = SegmentLengths::MOST - first;
            let start = from + next.lengths.bytes(joined as u32);
            assert_eq!(rest.start_and_taken, start | 1);
            assert_eq!(rest.target_and_tag, tag);
            assert_eq!(rest.lengths, lengths(SegmentLengths::MOST, first + second));
        }
    }

    #[test]
    fn as_many_lengths_as_there_is_room_for() {
        let mut lengths = SegmentLengths::default();
        let mut bytes = 0;
        for n in 0..SegmentLengths::MOST as u32 {
            assert_eq!((lengths.count(), lengths.bytes(n)), (n, bytes));
            let len = if n % 3 == 0 { 4 } else { 2 };
            lengths = lengths.with(len);
            assert_eq!(lengths.len_at(n), len);
            bytes += u64::from(len);
        }
        assert_eq!(lengths.bytes(lengths.count()), bytes);
    }

    #[test]
    fn kinds_of_instructions() {
        for (encoding, expected) in [
            (0x0000_0063, Some(TransferKind::Branch)),
            (0x0000_006f, Some(TransferKind::Direct)),
            (0x0000_00ef, Some(TransferKind::DirectCall)),
            (0x0000_8067, Some(TransferKind::Return)),
            (0x0000_80e7, Some(TransferKind::IndirectCall)),
            (0x0007_8067, Some(TransferKind::Indirect)),
            (0x0000_0073, Some(TransferKind::Flush)),
            (0x0000_0013, None),
        ] {
            assert_eq!(TransferKind::of(&crate::decode(encoding)), expected, "{encoding:#x}");
        }
    }
}
