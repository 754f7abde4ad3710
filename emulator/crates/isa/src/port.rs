//! The port between the functional machine and a timing model. The machine drives: for each
//! instruction in program order it calls [`TimingModel::fetch`], perhaps
//! [`TimingModel::interrupt`], executes, and calls [`TimingModel::retire`].

use crate::{DecodedInst, InstClass, PerfEvent, Privilege, Selection, Trap};
use crate::{FILTER_LINE_BITS, LineFilters, PathLog};

/// Dense number of a static instruction: one per (address space, virtual PC, encoding) that was
/// executed. Numbers start at 0 and are handed out in order of first execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct StaticId(pub u32);

/// The static info of an instruction, announced once through [`TimingModel::define`].
#[derive(Clone, Copy, Debug)]
pub struct StaticInst {
    /// Number of the instruction.
    pub id: StaticId,
    /// Address space: 0 bare (M-mode or no translation), 1 global (kernel) mappings, 2 and up the user address spaces in order of first execution.
    /// After many user spaces, further ones that begin at the same instruction share a number.
    pub space: u32,
    /// Virtual program counter.
    pub pc: u64,
    /// The decoded instruction.
    pub inst: DecodedInst,
    /// Privilege in which it first executed.
    pub privilege: Privilege,
}

impl StaticInst {
    /// Returns the target of a direct branch or jump.
    pub fn direct_target(&self) -> Option<u64> {
        matches!(self.inst.class, InstClass::Branch | InstClass::Jal)
            .then(|| self.pc.wrapping_add(self.inst.imm as i64 as u64))
    }
}

/// What an instruction asked of the memory system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum MemKind {
    /// No access.
    #[default]
    None,
    /// A load (also load-reserved).
    Load,
    /// A store (also a successful store-conditional).
    Store,
    /// An atomic read-modify-write.
    Amo,
}

/// A data access of one instruction; the struct occupies 16 bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct MemAccess {
    /// Virtual address of the first byte.
    pub va: u64,
    /// Physical address, and above its 56 bits: kind (2 bits), log2 of the size (3 bits), device register.
    packed: u64,
}

/// Bits of a physical address (privileged specification, section on Sv39: 56-bit physical addresses).
const PA_BITS: u32 = 56;

impl MemAccess {
    /// An access of `size` bytes (1, 2, 4, 8 or 16); `mmio`: to device registers (uncached, not speculated).
    #[inline(always)]
    pub const fn new(kind: MemKind, va: u64, pa: u64, size: u8, mmio: bool) -> Self {
        Self { va, packed: pa & ((1 << PA_BITS) - 1) | Self::above(kind, size, mmio) }
    }

    /// Returns what stands above the physical address in the second word, for translated code, which writes both.
    #[inline(always)]
    pub const fn above(kind: MemKind, size: u8, mmio: bool) -> u64 {
        debug_assert!(size.is_power_of_two() && size <= 16);
        let above = kind as u64 | (size.trailing_zeros() as u64) << 2 | (mmio as u64) << 5;
        above << PA_BITS
    }

    /// Byte offset of the second word: physical address, kind, size and device register.
    pub const PACKED: usize = std::mem::offset_of!(Self, packed);

    /// Returns the physical address of the first byte.
    #[inline(always)]
    pub const fn pa(&self) -> u64 {
        self.packed & ((1 << PA_BITS) - 1)
    }

    /// Returns the kind; [`MemKind::None`] if the instruction accessed no memory or trapped before it did.
    #[inline(always)]
    pub const fn kind(&self) -> MemKind {
        match self.packed >> PA_BITS & 3 {
            0 => MemKind::None,
            1 => MemKind::Load,
            2 => MemKind::Store,
            _ => MemKind::Amo,
        }
    }

    /// Returns the size of the access in bytes.
    #[inline(always)]
    pub const fn size(&self) -> u8 {
        1 << (self.packed >> (PA_BITS + 2) & 7)
    }

    /// Returns whether the access is to a device register.
    #[inline(always)]
    pub const fn mmio(&self) -> bool {
        self.packed >> (PA_BITS + 5) & 1 != 0
    }
}

/// A summary of an operand that decides a latency.
#[derive(Clone, Copy, Debug, Default)]
pub struct Operand {
    /// Division: significant bits of the dividend's magnitude (0 to 64). Otherwise 0.
    pub dividend_bits: u8,
    /// Division: significant bits of the divisor's magnitude (0 to 64). Otherwise 0.
    pub divisor_bits: u8,
}

/// One executed instruction: all that a timing model may know about it.
#[derive(Clone, Copy, Debug)]
pub struct Executed {
    /// Static instruction.
    pub id: StaticId,
    /// Decoded form.
    pub inst: DecodedInst,
    /// Virtual address it was fetched from.
    pub pc: u64,
    /// Physical address it was fetched from.
    pub fetch_pa: u64,
    /// Virtual address of the instruction that runs next (the handler, after a trap).
    pub next_pc: u64,
    /// Data access of the instruction.
    pub mem: MemAccess,
    /// Sizes of the operands, as far as they decide the latency.
    pub operand: Operand,
    /// Privilege in which the instruction executed.
    pub privilege: Privilege,
    /// The exception that the instruction raised; it then does not retire.
    pub trap: Option<Trap>,
    /// True if the address of the fetch was translated; the timing model takes the address of a data access to be translated, too.
    pub translated: bool,
}

/// Most instructions of a [`Run`].
pub const RUN_STEPS: usize = 128;

/// One instruction of a [`Run`], in 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Step {
    /// Static instruction.
    pub id: StaticId,
    /// Offset in its page (16 bits), class (8 bits), length (8 bits).
    rest: u32,
}

impl Step {
    /// Returns the step of an instruction at an offset in its page, of that class and length.
    #[inline(always)]
    pub const fn new(id: StaticId, offset: u16, class: InstClass, len: u8) -> Self {
        Self { id, rest: offset as u32 | (class as u32) << 16 | (len as u32) << 24 }
    }

    /// Returns packed offset, class and length: all fields but `id`. Translated code writes them as one constant.
    pub const fn rest(self) -> u32 {
        self.rest
    }

    /// Byte offset of [`Self::rest`].
    pub const REST: usize = std::mem::offset_of!(Self, rest);

    /// Returns the offset of the instruction in its page.
    #[inline(always)]
    pub const fn offset(self) -> u16 {
        self.rest as u16
    }

    /// Returns the length of the instruction in bytes: 2 or 4.
    #[inline(always)]
    pub const fn size(self) -> u8 {
        (self.rest >> 24) as u8
    }

    /// Returns whether the instruction is a branch or jump.
    #[inline(always)]
    pub const fn is_control_flow(self) -> bool {
        // The numbers of branches and jumps follow each other: one comparison.
        let class = (self.rest >> 16) as u8;
        InstClass::Branch as u8 <= class && class <= InstClass::Jalr as u8
    }

    /// Returns whether the instruction is an integer division, which has an operand in [`Run::operands`].
    pub const fn divides(self) -> bool {
        (self.rest >> 16) as u8 == InstClass::IntDiv as u8
    }
}

/// Instructions of one page that were executed one after the other. None of them serialises
/// ([`InstClass::serialises`]), raised an exception, or accessed a device register.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The instructions.
    pub steps: &'a [Step],
    /// The data accesses of those that load or store.
    pub accesses: &'a [MemAccess],
    /// The operands of those that divide.
    pub operands: &'a [Operand],
    /// Virtual address of the instruction that runs next.
    pub next_pc: u64,
    /// Virtual address of the page.
    pub vpage: u64,
    /// Physical address of the page.
    pub page: u64,
    /// Privilege in which they executed.
    pub privilege: Privilege,
    /// Address translation is on.
    pub translated: bool,
}

impl Run<'_> {
    /// Returns the virtual address of one of the run's instructions.
    #[inline(always)]
    pub fn pc(&self, step: &Step) -> u64 {
        self.vpage | u64::from(step.offset())
    }
}

/// The page-table entries that a hardware walk for an address reads, root first.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageWalk {
    /// Physical addresses of the entries; the first `levels` are valid.
    pub pte: [u64; 5],
    /// Number of entries read (0 if the address is not translated).
    pub levels: u8,
    /// log2 of the page size at the leaf (12, 21, 30, 39), 12 when unmapped.
    pub page_bits: u8,
}

/// What is watched for a programmable counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Selection of the counter.
    pub selection: Selection,
    /// Events until the first overflow.
    pub to_go: u64,
    /// Events from one overflow to the next; `u64::MAX`: the counter does not overflow again.
    pub period: u64,
}

/// Lines of RAM that a device wrote, or wrote a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaLines {
    /// Number of the first line: its physical address divided by the bytes of a line, 2 to the power of [`FILTER_LINE_BITS`].
    pub first: u64,
    /// How many lines, 1 to [`Self::MAX_COUNT`].
    pub count: u32,
}

impl DmaLines {
    /// Largest [`Self::count`]: a damaged file cannot ask for endless work by one number.
    pub const MAX_COUNT: u32 = 4096;

    /// Returns the lines of `len` bytes from `pa` on, as many values as it takes.
    pub fn of(pa: u64, len: u64) -> impl Iterator<Item = Self> {
        let end = pa.saturating_add(len).div_ceil(1 << FILTER_LINE_BITS);
        let first = pa >> FILTER_LINE_BITS;
        (first..end).step_by(Self::MAX_COUNT as usize).map(move |first| Self {
            first,
            count: (end - first).min(Self::MAX_COUNT.into()) as u32,
        })
    }

    /// Returns the numbers of the lines.
    pub fn lines(self) -> impl Iterator<Item = u64> {
        self.first..self.first.saturating_add(self.count.into())
    }
}

/// A timing model: turns the program-order stream into cycles.
///
/// Contract, per instruction: `define` (once per static instruction, before its first use), then
/// `fetch`, then either `interrupt` (the instruction is dropped) or `retire`; or `run` instead for several.
/// All cycles are core cycles since reset and never decrease from call to call of the same method.
pub trait TimingModel {
    /// False only for [`Untimed`]: lets the hart's loop drop every call.
    const TIMED: bool;
    /// True if the model takes [runs](Self::run). Interrupts are then taken between runs, up to [`RUN_STEPS`] instructions late. An interrupt whose
    /// cycle is known well before is late by at most about as many instructions as a core's front end holds.
    const RUNS: bool = false;
    /// The model keeps caches, TLBs and predictors warm while nothing is timed: it gets [`Self::warm_access`] and [`Self::warm_fetch`]. Only for
    /// models that do not [time](Self::TIMED).
    const WARMS: bool = false;
    /// The hart writes the path that it takes into a [log](Self::path_log) of the model. Only for models that do not [time](Self::TIMED), and for all
    /// that [warm](Self::WARMS).
    const LOGS: bool = Self::WARMS;
    /// The model says how many cycles an instruction takes while nothing is timed ([`Self::warm_rate`]), as all do that [warm](Self::WARMS).
    const PACED: bool = Self::WARMS;

    /// Announces a static instruction.
    fn define(&mut self, inst: &StaticInst);

    /// Tells the model that the hart walked the page tables for `va`. Until the next call for the page, `walk` is the walk of every access to the
    /// page. The call comes before the `fetch`, `retire` or `run` with the first access that needs the walk, and again after translations may have
    /// changed.
    fn translated(&mut self, _va: u64, _walk: &PageWalk) {}

    /// Times the front end for the instruction at `pc` (physical address `pa`) and returns the
    /// cycle in which it is decoded. An interrupt that is pending at that cycle is taken in its place.
    ///
    /// The result is exact from cycle `before` on. If the exact cycle is before `before`, the result may be any later cycle that is also before
    /// `before`.
    fn fetch(
        &mut self,
        id: StaticId,
        inst: &DecodedInst,
        pc: u64,
        pa: u64,
        translated: bool,
        before: u64,
    ) -> u64;

    /// Returns the exact cycle for the one that `fetch` or `run` returned last.
    fn exactly(&mut self, decoded: u64) -> u64 {
        decoded
    }

    /// The instruction last passed to `fetch` was tagged with an interrupt: it reaches the ROB's
    /// head, does not execute, and the handler at `handler_pc` is fetched.
    fn interrupt(&mut self, id: StaticId, pc: u64, handler_pc: u64);

    /// Times the rest of the pipeline for an executed instruction (or one that raised an exception).
    fn retire(&mut self, executed: &Executed);

    /// Does `fetch` and `retire` for every instruction of a run. Returns the cycle in which the last instruction is decoded, as exactly as `fetch`
    /// does. Only for models that take [runs](Self::RUNS).
    fn run(&mut self, _run: &Run<'_>, _before: u64) -> u64 {
        0
    }

    /// Sleeps until `cycle` after a `wfi` that was retired; nothing happens if that is in the past.
    fn idle_until(&mut self, cycle: u64);

    /// Sleeps until `cycle` after a stretch in which [paced](Self::PACED) models stood for this one. If those models [warmed](Self::WARMS), this one
    /// knows where fetch goes on.
    fn wake_at(&mut self, cycle: u64) {
        self.idle_until(cycle);
    }

    /// Says that other harts have executed since this one did: they may have taken its lines.
    fn other_harts_executed(&mut self) {}

    /// Cycle at which a serialising instruction (a CSR read, an MMIO access) that is executed now
    /// takes effect: the value that `mcycle` and `time` are derived from.
    fn now(&self) -> u64;

    /// Returns [`Self::now`], or a later cycle that costs less to find. A model may return the later cycle as long as the core has not come to the
    /// cycle `before` of the last [`fetch`](Self::fetch): the hart then asks again before the difference matters.
    fn latest(&self) -> u64 {
        self.now()
    }

    /// Returns the running total of an event since reset. A [followed](PerfEvent::is_followed) event is counted only while somebody asks for it.
    fn count(&self, event: PerfEvent) -> u64;

    /// Sets a programmable counter (0 to 28) to a selection that is to be [followed](Selection::is_followed), or to one that is
    /// not.
    fn select(&mut self, _counter: usize, _selection: Selection) {}

    /// Returns a running total of what was selected for a counter. The total may start from any number: only differences of two totals mean
    /// something.
    fn selected(&self, _counter: usize) -> u64 {
        0
    }

    /// Says whether the sink wants the details of all that leaves the ROB from now on.
    fn observe(&mut self, _on: bool) {}

    /// Says which overflows of a programmable counter (0 to 28) the sink wants attributed to an instruction, if any: with
    /// `to_go` more of what is selected, the counter overflows.
    fn watch(&mut self, _counter: usize, _watch: Option<Watch>) {}

    /// `sfence.vma`, a `satp` write or a PMP change was executed: drop cached translations.
    fn flush_tlb(&mut self);

    /// A device wrote to RAM, after what the hart has executed so far.
    fn dma_write(&mut self, _lines: DmaLines) {}

    /// Returns the lines of which the model need not be told. Only for models that [warm](Self::WARMS).
    fn line_filters(&self) -> Option<LineFilters<'_>> {
        None
    }

    /// Returns the cycles that the model takes each instruction to need, in units of 2^-16. Only for [paced](Self::PACED) models.
    fn warm_rate(&self) -> u64 {
        1 << 16
    }

    /// Returns the cycles since the last call that the hart needed beyond those of the [rate](Self::warm_rate), as it waited for lines of other
    /// harts. Only for [paced](Self::PACED) models of several harts.
    fn take_delay(&mut self) -> u64 {
        0
    }

    /// Tells the model of an access to RAM whose line the filters do not show. `translated`: the access went through page tables, which the model
    /// knows by [`translated`](Self::translated).
    fn warm_access(&mut self, _access: &MemAccess, _translated: bool) {}

    /// Tells the model that code at `pc` (physical address `pa`), whose line the filters do not show, is executed next.
    fn warm_fetch(&mut self, _pc: u64, _pa: u64, _translated: bool) {}

    /// Returns the log in which the hart writes what it executes. Only for models that [log](Self::LOGS).
    fn path_log(&mut self) -> Option<&mut PathLog> {
        None
    }

    /// Takes what [`Self::path_log`] has, and leaves it empty. The hart calls it once the log is [full](PathLog::is_full).
    fn take_path_log(&mut self) {}

    /// Tells the model of an access to RAM that missed the emulator's own TLB: the first access of a run to a page, and some later ones. `pa`:
    /// physical address; `written`: the access is a store.
    #[inline(always)]
    fn touch_page(&mut self, _pa: u64, _written: bool) {}

    /// `fence.i` was executed without timing. Only for [paced](Self::PACED) models.
    fn warm_fence_i(&mut self) {}

    /// Puts a side-band record of the simulator's own into the stream, after all that has been retired. Nothing that the guest can see depends
    /// on it.
    fn note(&mut self, _kind: u8, _bytes: Vec<u8>) {}

    /// Privilege changed (trap or return) by the instruction just retired or the interrupt just taken.
    fn privilege(&mut self, privilege: Privilege);
}

/// Expands to the methods of a [`TimingModel`] that does not [time](TimingModel::TIMED): a hart does not call them, but for `count`, which has
/// counted nothing.
#[macro_export]
macro_rules! methods_without_timing {
    () => {
        fn define(&mut self, _: &$crate::StaticInst) {}
        fn fetch(
            &mut self,
            _: $crate::StaticId,
            _: &$crate::DecodedInst,
            _: u64,
            _: u64,
            _: bool,
            _: u64,
        ) -> u64 {
            0
        }
        fn interrupt(&mut self, _: $crate::StaticId, _: u64, _: u64) {}
        fn retire(&mut self, _: &$crate::Executed) {}
        fn idle_until(&mut self, _: u64) {}
        fn now(&self) -> u64 {
            0
        }
        fn count(&self, _: $crate::PerfEvent) -> u64 {
            0
        }
    };
}

/// No timing: one instruction is one cycle, counted by the hart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untimed;

impl TimingModel for Untimed {
    const TIMED: bool = false;
    crate::methods_without_timing!();
    fn flush_tlb(&mut self) {}
    fn privilege(&mut self, _: Privilege) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_keeps_what_it_is_given() {
        let pa = (1 << PA_BITS) - 3;
        for kind in [MemKind::None, MemKind::Load, MemKind::Store, MemKind::Amo] {
            for size in [1, 2, 4, 8, 16] {
                for mmio in [false, true] {
                    let access = MemAccess::new(kind, u64::MAX - 7, pa, size, mmio);
                    let found = (access.kind(), access.va, access.pa());
                    assert_eq!(found, (kind, u64::MAX - 7, pa));
                    assert_eq!((access.size(), access.mmio()), (size, mmio));
                }
            }
        }
        assert_eq!(MemAccess::default().kind(), MemKind::None);
    }
}
