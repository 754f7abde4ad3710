//! The calls of a core as numbers. What comes next is foreseen by what came after the same before, alike when it is written and when it is
//! read.

mod foreseen;
mod read;
mod write;

use isa::{
    DecodedInst, Exception, Executed, InstClass, MemAccess, MemKind, Operand, PageWalk,
    PathSegment, Privilege, SegmentLengths, StaticId, StaticInst, TransferKind, Trap,
};

use crate::MAX_INSTRUCTIONS;
use crate::columns::{Coder, Column};
use crate::reader::UnitsError;
use foreseen::{BranchDirections, Pages, WarmColumns, WarmLine, WarmLines};
pub(crate) use read::RunBuffers;

type Result<T> = std::result::Result<T, UnitsError>;

/// Segments that are remembered by where they begin; a power of two.
const SEGMENTS: usize = 1 << 15;
/// Return addresses that are remembered.
const RETURNS: usize = 64;
/// Log2 of the bytes of a line, of which warming knows no parts.
const LINE_BITS: u32 = isa::FILTER_LINE_BITS;

/// Kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Run = 0,
    WarmAccess = 1,
    WarmFetch = 2,
    Fetch = 3,
    Retire = 4,
    Mode = 5,
    Define = 6,
    Translated = 7,
    Interrupt = 8,
    IdleUntil = 9,
    FlushTlb = 10,
    FenceI = 11,
    Note = 12,
    Privilege = 13,
    Wake = 14,
    Rest = 15,
    Region = 16,
    DmaWrite = 17,
}

impl Kind {
    const ALL: [Self; 18] = [
        Self::Run,
        Self::WarmAccess,
        Self::WarmFetch,
        Self::Fetch,
        Self::Retire,
        Self::Mode,
        Self::Define,
        Self::Translated,
        Self::Interrupt,
        Self::IdleUntil,
        Self::FlushTlb,
        Self::FenceI,
        Self::Note,
        Self::Privilege,
        Self::Wake,
        Self::Rest,
        Self::Region,
        Self::DmaWrite,
    ];
}

/// Most calls in succession that are alike and are counted as such, so that a damaged file cannot have endless ones.
const MAX_REPEATS: u32 = 1 << 12;
/// Bits of a call's first number that say its [`Kind`]; those above are its flags.
const KIND_BITS: u32 = 5;
const KIND_MASK: u64 = (1 << KIND_BITS) - 1;

/// A static instruction, and what happened to it last.
#[derive(Clone, Copy)]
struct Known {
    inst: StaticInst,
    /// The instruction that followed.
    next: u32,
    /// Virtual address of the instruction that followed.
    next_pc: u64,
    /// Virtual address that it accessed, and how far that is from the one before.
    va: u64,
    stride: u64,
    /// How far that is from the access of the instruction before it.
    distance_from_last: u64,
    /// Counter of two bits that chooses which of both distances foresees the next address, as in a tournament predictor: that from the last access from [`CHOOSER_THRESHOLD`] on.
    chooser: u8,
    /// Kind, size and device register of what it accessed ([`access_bits`]).
    access: u64,
}

/// Half of the values of a counter of two bits.
const CHOOSER_THRESHOLD: u8 = 2;

/// Address translation and privilege, which rarely change.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mode {
    privilege: Privilege,
    translated: bool,
}

impl Mode {
    fn number(self) -> u64 {
        self.privilege as u64 | u64::from(self.translated) << 2
    }

    fn from_number(number: u64) -> Result<Self> {
        let privilege = Privilege::from_bits(number)
            .ok_or(UnitsError::Damaged("no privilege has this number"))?;
        Ok(Self { privilege, translated: number >> 2 & 1 != 0 })
    }
}

/// A segment of the path that began at a place.
#[derive(Clone, Copy, Default)]
struct KnownSegment {
    start: u64,
    target_and_tag: u64,
    lengths: SegmentLengths,
}

/// What is foreseen.
pub(crate) struct Codec {
    known: Vec<Known>,
    /// The instruction that was executed last.
    last: u32,
    mode: Mode,
    data_pages: Pages,
    /// Virtual address of the last access.
    last_va: u64,
    code_pages: Pages,
    /// Where the last segment of the path ended.
    path_at: u64,
    segments: Box<[KnownSegment; SEGMENTS]>,
    directions: BranchDirections,
    returns: [u64; RETURNS],
    return_at: usize,
    /// Lines that were accessed while nothing was timed, of data and of code.
    warm: [WarmLines; 2],
    /// Page-table entries of the last walk.
    walk: PageWalk,
    /// Cycle of the last call that had one.
    cycle: u64,
    /// Something was fetched and has neither retired nor been interrupted.
    fetched: Option<(StaticId, u64)>,
    /// The number of the last call, and how many before it were alike.
    call: (u64, u32),
    /// Calls that were written or read, but for the path.
    calls: u64,
    path: PathProgress,
}

/// The path is not among the calls: its segments of a rest, or of what a chunk has of one, are read in pieces between them. So neither when a hart gives its log of the path
/// nor in which pieces makes a difference.
#[derive(Default)]
struct PathProgress {
    /// The hart executes without timing, and predictors learn from its path.
    learns: bool,
    /// The last segment that was executed, which those that follow may be joined to; written only.
    last: Option<PathSegment>,
    /// Segments that were written since the rest or the chunk began, or that are left to be read.
    segments: u64,
    /// Calls that were written since then, or that are left to be read.
    calls: u64,
    /// Calls that are read before the next piece of the path.
    until_piece: u64,
    /// The number of a call that is read once the path has been.
    held: Option<u64>,
}

/// Returns what an access is, apart from its addresses.
fn access_bits(access: &MemAccess) -> u64 {
    access.kind() as u64
        | u64::from(access.size().trailing_zeros()) << 2
        | u64::from(access.mmio()) << 5
}

/// Returns an access of what [`access_bits`] returned.
fn access_of(bits: u64, va: u64, pa: u64) -> MemAccess {
    let kind = match bits & 3 {
        0 => MemKind::None,
        1 => MemKind::Load,
        2 => MemKind::Store,
        _ => MemKind::Amo,
    };
    // No access has more than 16 bytes.
    MemAccess::new(kind, va, pa, 1 << (bits >> 2 & 7).min(4), bits >> 5 & 1 != 0)
}
impl Codec {
    pub(crate) fn new() -> Self {
        Self {
            known: Vec::new(),
            last: 0,
            mode: Mode { privilege: Privilege::Machine, translated: false },
            data_pages: Pages::new(),
            last_va: 0,
            code_pages: Pages::new(),
            path_at: 0,
            segments: Box::new([KnownSegment::default(); SEGMENTS]),
            directions: BranchDirections::new(),
            returns: [0; RETURNS],
            return_at: 0,
            warm: [WarmLines::new(WarmColumns::DATA), WarmLines::new(WarmColumns::CODE)],
            walk: PageWalk::default(),
            cycle: 0,
            fetched: None,
            call: (0, 0),
            calls: 0,
            path: PathProgress::default(),
        }
    }

    /// Returns how many calls were written or read, but for the path.
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    /// Passes on the number of a call.
    #[inline]
    fn call<C: Coder>(&mut self, coder: &mut C, number: u64) -> Result<u64> {
        let (last, alike) = self.call;
        let foreseen = number == last && alike < MAX_REPEATS;
        self.call = match coder.foreseen(Column::Calls, foreseen)? {
            true if alike < MAX_REPEATS => (last, alike + 1),
            true => return Err(UnitsError::Damaged("too many calls that are alike")),
            false => (coder.number(Column::Calls, number)?, 0),
        };
        Ok(self.call.0)
    }

    fn known(&self, id: u32) -> Result<&Known> {
        self.known
            .get(id as usize)
            .ok_or(UnitsError::Damaged("an instruction that was not announced"))
    }

    /// Passes on which instruction is executed next.
    #[inline]
    fn step<C: Coder>(&mut self, coder: &mut C, id: u32) -> Result<u32> {
        let next = self.known.get(self.last as usize).map_or(0, |last| last.next);
        let mut id = id;
        match coder.foreseen(Column::Steps, id == next)? {
            true => id = next,
            false => {
                id = coder.near(Column::Steps, self.last.into(), id.into())? as u32;
                if let Some(last) = self.known.get_mut(self.last as usize) {
                    last.next = id;
                }
            }
        }
        self.last = id;
        Ok(id)
    }

    /// Passes on an access of an instruction.
    #[inline]
    fn access<C: Coder>(
        &mut self,
        coder: &mut C,
        id: u32,
        access: &MemAccess,
    ) -> Result<MemAccess> {
        let known = self
            .known
            .get_mut(id as usize)
            .ok_or(UnitsError::Damaged("an access of no instruction"))?;
        let by_stride = known.va.wrapping_add(known.stride);
        let by_distance = self.last_va.wrapping_add(known.distance_from_last);
        let (mut va, other) = match known.chooser < CHOOSER_THRESHOLD {
            true => (by_stride, by_distance),
            false => (by_distance, by_stride),
        };
        if !coder.foreseen(Column::Addresses, access.va == va)? {
            va = other;
            if !coder.foreseen(Column::OtherAddresses, access.va == va)? {
                va = coder.near(Column::OtherAddresses, known.va, access.va)?;
            }
        }
        known.chooser = match (va == by_stride, va == by_distance) {
            (true, false) => known.chooser.saturating_sub(1),
            (false, true) => (known.chooser + 1).min(3),
            _ => known.chooser,
        };
        known.stride = va.wrapping_sub(known.va);
        known.distance_from_last = va.wrapping_sub(self.last_va);
        (known.va, self.last_va) = (va, va);
        let slot = self.data_pages.slot(va >> 12);
        let bits = access_bits(access);
        let pa = slot.1 << 12 | va & 0xfff;
        let foreseen = slot.0 == va >> 12 && pa == access.pa() && bits == known.access;
        if coder.foreseen(Column::DataPages, foreseen)? {
            return Ok(access_of(known.access, va, pa));
        }
        known.access = coder.number(Column::DataPages, bits)?;
        let pa = coder.near(Column::DataPages, pa, access.pa())?;
        // An access that is not translated as its page's others are, as one that accesses nothing, says nothing of the page.
        if pa & 0xfff == va & 0xfff {
            *slot = (va >> 12, pa >> 12);
        }
        Ok(access_of(known.access, va, pa))
    }

    /// Passes on where the path goes on after an instruction.
    #[inline]
    fn next_pc<C: Coder>(&mut self, coder: &mut C, id: u32, next_pc: u64) -> Result<u64> {
        let known = self
            .known
            .get_mut(id as usize)
            .ok_or(UnitsError::Damaged("a path from no instruction"))?;
        if !coder.foreseen(Column::Targets, known.next_pc == next_pc)? {
            known.next_pc = coder.near(Column::Targets, known.next_pc, next_pc)?;
        }
        Ok(known.next_pc)
    }

    /// Passes on how many bits the operands of a division have.
    fn operand<C: Coder>(coder: &mut C, operand: &Operand) -> Result<Operand> {
        let number = u64::from(operand.dividend_bits) | u64::from(operand.divisor_bits) << 8;
        let number = coder.number(Column::Counts, number)?;
        // A register has 64 bits.
        let bits = |number: u64| (number & 0xff).min(64) as u8;
        Ok(Operand { dividend_bits: bits(number), divisor_bits: bits(number >> 8) })
    }

    /// Passes on a segment of the path.
    #[inline]
    fn segment<C: Coder>(&mut self, coder: &mut C, segment: &PathSegment) -> Result<PathSegment> {
        let mut start = segment.start();
        match coder.foreseen(Column::Starts, start == self.path_at)? {
            true => start = self.path_at,
            false => start = coder.near(Column::Starts, self.path_at, start)? & !1,
        }
        let slot = &mut self.segments[(start >> 1 ^ start >> 16) as usize % SEGMENTS];
        let known = PathSegment { target_and_tag: slot.target_and_tag, ..PathSegment::default() };
        let mut foreseen = slot.target_and_tag;
        let returns = known.kind() == Some(TransferKind::Return);
        if returns {
            let to = self.returns[self.return_at % RETURNS];
            foreseen = to.wrapping_add(PathSegment::tag(Some(TransferKind::Return)));
        }
        let same = slot.start == start
            && foreseen == segment.target_and_tag
            && slot.lengths == segment.lengths;
        if coder.foreseen(Column::Segments, same)? {
            slot.target_and_tag = foreseen;
        } else {
            let from =
                PathSegment { target_and_tag: segment.target_and_tag, ..PathSegment::default() };
            let tag = PathSegment::tag(from.kind()) >> 61;
            let tag = coder.number(Column::Segments, tag)? << 61;
            let target =
                coder.near(Column::Segments, start, segment.target_and_tag.wrapping_sub(tag))?;
            let lengths = coder.number(Column::Segments, segment.lengths.bits())?;
            slot.lengths = SegmentLengths::from_bits(lengths)
                .ok_or(UnitsError::Damaged("a segment without instructions"))?;
            (slot.start, slot.target_and_tag) = (start, target.wrapping_add(tag));
        }
        let mut found = PathSegment {
            start_and_taken: start,
            target_and_tag: slot.target_and_tag,
            lengths: slot.lengths,
        };
        let end = start.wrapping_add(found.lengths.bytes(found.lengths.count()));
        let kind = found.kind();
        // Nothing else is said to be taken.
        if kind == Some(TransferKind::Branch) {
            found.start_and_taken |=
                u64::from(self.directions.next(coder, start, segment.taken())?);
        }
        match kind {
            Some(TransferKind::DirectCall | TransferKind::IndirectCall) => {
                self.return_at = self.return_at.wrapping_add(1);
                self.returns[self.return_at % RETURNS] = end;
            }
            Some(TransferKind::Return) => self.return_at = self.return_at.wrapping_sub(1),
            _ => {}
        }
        self.path_at = match kind {
            None => end,
            Some(TransferKind::Branch) if !found.taken() => end,
            _ => found.target(),
        };
        Ok(found)
    }

    /// Passes on a line that was accessed while nothing was timed: its virtual and physical address, and whether it was written.
    fn warm<C: Coder>(
        &mut self,
        coder: &mut C,
        is_code: bool,
        (va, pa, stores): (u64, u64, bool),
    ) -> Result<(u64, u64, bool)> {
        let next = WarmLine { line: va >> LINE_BITS, physical: pa >> LINE_BITS, stores };
        let WarmLine { line, physical, stores } =
            self.warm[usize::from(is_code)].next(coder, next)?;
        Ok((line << LINE_BITS, physical << LINE_BITS, stores))
    }

    /// Passes on a cycle.
    fn cycle<C: Coder>(&mut self, coder: &mut C, cycle: u64) -> Result<u64> {
        self.cycle = coder.near(Column::Rest, self.cycle, cycle)?;
        Ok(self.cycle)
    }

    /// Passes on the static info of an instruction, and keeps it.
    fn define<C: Coder>(&mut self, coder: &mut C, inst: Option<&StaticInst>) -> Result<StaticInst> {
        let id = self.known.len();
        if id >= MAX_INSTRUCTIONS {
            return Err(UnitsError::TooMany);
        }
        let before = self
            .known
            .last()
            .map_or(0, |known| known.inst.pc.wrapping_add(known.inst.inst.len.into()));
        let pc = coder.near(Column::Rest, before, inst.map_or(0, |inst| inst.pc))?;
        let raw = coder.number(Column::Rest, inst.map_or(0, |inst| inst.inst.raw.into()))? as u32;
        let rest = inst.map_or(0, |inst| {
            let is_illegal = inst.inst.class == InstClass::Illegal;
            u64::from(inst.space) << 3 | u64::from(is_illegal) << 2 | inst.privilege as u64
        });
        let rest = coder.number(Column::Rest, rest)?;
        let inst = StaticInst {
            id: StaticId(id as u32),
            space: (rest >> 3) as u32,
            pc,
            inst: match rest >> 2 & 1 {
                0 => isa::decode(raw),
                _ => DecodedInst::illegal(raw),
            },
            privilege: Mode::from_number(rest & 3)?.privilege,
        };
        let next_pc = pc.wrapping_add(inst.inst.len.into());
        self.known.push(Known {
            inst,
            next: id as u32 + 1,
            next_pc,
            va: 0,
            stride: 0,
            distance_from_last: 0,
            chooser: 0,
            access: 0,
        });
        Ok(inst)
    }

    /// Passes on what a walk reads.
    fn walk<C: Coder>(
        &mut self,
        coder: &mut C,
        va: u64,
        walk: &PageWalk,
    ) -> Result<(u64, PageWalk)> {
        let page = coder.number(Column::Rest, va >> 12)?;
        let shape =
            coder.number(Column::Rest, u64::from(walk.levels) | u64::from(walk.page_bits) << 3)?;
        let levels = (shape & 7) as u8;
        if levels > 5 || shape >> 3 > 57 {
            return Err(UnitsError::Damaged("a walk of too many levels"));
        }
        for (last, entry) in self.walk.pte.iter_mut().zip(&walk.pte).take(levels.into()) {
            *last = coder.near(Column::Rest, *last, *entry)?;
        }
        let walk = PageWalk { levels, page_bits: (shape >> 3) as u8, ..self.walk };
        Ok((page << 12, walk))
    }

    /// Passes on an instruction that was fetched and has been executed.
    fn executed<C: Coder>(
        &mut self,
        coder: &mut C,
        (id, fetch_pa): (StaticId, u64),
        flags: u64,
        executed: Option<&Executed>,
    ) -> Result<Executed> {
        let Known { inst: known, .. } = *self.known(id.0)?;
        let nothing = MemAccess::default();
        let mem = match flags & ACCESSES {
            0 => nothing,
            _ => self.access(coder, id.0, executed.map_or(&nothing, |executed| &executed.mem))?,
        };
        let next_pc = self.next_pc(coder, id.0, executed.map_or(0, |executed| executed.next_pc))?;
        let none = Operand::default();
        let operand = match flags & DIVIDES {
            0 => none,
            _ => Self::operand(coder, executed.map_or(&none, |executed| &executed.operand))?,
        };
        let trap = match flags & TRAPS {
            0 => None,
            _ => {
                let trap = executed.and_then(|executed| executed.trap);
                let cause = trap.map_or(0, |trap| trap.cause as u64);
                let cause = coder.number(Column::Rest, cause)?;
                let tval = coder.number(Column::Rest, trap.map_or(0, |trap| trap.tval))?;
                let cause = CAUSES.into_iter().find(|known| *known as u64 == cause);
                Some(Trap {
                    cause: cause.ok_or(UnitsError::Damaged("no exception has this number"))?,
                    tval,
                })
            }
        };
        let Mode { privilege, translated } = self.mode;
        let StaticInst { inst, pc, .. } = known;
        Ok(Executed { id, inst, pc, fetch_pa, next_pc, mem, operand, privilege, trap, translated })
    }
    /// Passes on that an instruction was fetched.
    fn fetch<C: Coder>(&mut self, coder: &mut C, id: StaticId, pa: u64) -> Result<(StaticId, u64)> {
        let id = self.step(coder, id.0)?;
        let pc = self.known(id)?.inst.pc;
        let page = self.code_pages.code(coder, Column::CodePages, pc >> 12, pa >> 12)?;
        let pa = page << 12 | pc & 0xfff;
        self.fetched = Some((StaticId(id), pa));
        Ok((StaticId(id), pa))
    }
}

/// Flags of an instruction that was retired.
const ACCESSES: u64 = 1;
const DIVIDES: u64 = 2;
const TRAPS: u64 = 4;
/// Segments of a piece of the path at most.
const PIECE_SEGMENTS: u64 = 1 << 12;

/// Exceptions that an instruction can raise.
const CAUSES: [Exception; 14] = [
    Exception::InstMisaligned,
    Exception::InstAccessFault,
    Exception::IllegalInst,
    Exception::Breakpoint,
    Exception::LoadMisaligned,
    Exception::LoadAccessFault,
    Exception::StoreMisaligned,
    Exception::StoreAccessFault,
    Exception::EcallU,
    Exception::EcallS,
    Exception::EcallM,
    Exception::InstPageFault,
    Exception::LoadPageFault,
    Exception::StorePageFault,
];
