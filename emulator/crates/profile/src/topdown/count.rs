//! Counts slots from spans and blocks.

use commit_trace::{
    Class, CommitRecord, InstId, MAX_COMMIT_WIDTH, Redirect, Span, State, StaticInfo,
};

use super::lost::Lost;
use super::rules::{DECODE_TO_ROB, STALLS, backend, flush, latency, left_over, refusal};
use super::{SLOT_BITS, Slot, SlotWindow, Slots, SlotsAndCycles, TopDown};
use crate::block::{Block, bits, start_of};
use crate::counts::packed;
use crate::oracle::{Stalled, component};
use crate::packed::Packed;
use crate::stalls::counted_as;
use crate::{Category, ProcessId};

/// Cycles of a window at first.
const FIRST_WINDOW: u64 = 1 << 14;
/// Windows that are kept at least: at twice as many, each two are merged into one.
pub(crate) const WINDOWS: usize = 128;

/// Counts slots per process, instruction and leaf.
#[derive(Debug)]
pub(crate) struct Counter {
    width: u64,
    /// Lost slots, except those of stalls. (Retiring slots are the Oracle's commits.)
    lost: Lost,
    process: usize,
    open: Option<Open>,
    windows: Windows,
}

/// Slots that a committing cycle left unused. The cause is known when the next record comes.
#[derive(Debug)]
struct Open {
    process: usize,
    cycle: u64,
    slots: u64,
    first: CommitRecord,
    last: CommitRecord,
}

impl Counter {
    /// A counter for a core with `width` slots a cycle.
    pub(crate) fn new(width: u32) -> Self {
        let mut counter = Self {
            width: u64::from(width),
            lost: Lost::default(),
            process: 0,
            open: None,
            windows: Windows::default(),
        };
        counter.select(ProcessId::BOOT);
        counter
    }

    /// A process runs from here on.
    pub(crate) fn select(&mut self, process: ProcessId) {
        self.windows.flush(self.process);
        self.process = process.0 as usize;
        self.lost.select(self.process);
    }

    /// Counts a profiled span; `static_info` are those of all instructions so far. True if a window ended before it.
    pub(crate) fn span(&mut self, span: &Span<'_>, static_info: &[StaticInfo]) -> bool {
        let Some(record) = span.records.first() else {
            return false;
        };
        self.next(record, span.commit);
        let is_over = self.windows.reach(span.start, self.process);
        self.windows.cycles += span.cycles;
        match span.state {
            State::Computing => self.computing(span),
            _ => self.waiting(span, static_info),
        }
        self.windows.end = span.end();
        is_over
    }

    /// True if the block ends in the open window.
    #[inline(always)]
    pub(crate) fn is_in_window(&self, block: &Block<'_>) -> bool {
        let end = block.cycle + block.cycles;
        let is_within = |start: u64| end - start < self.windows.length;
        self.windows.start.is_some_and(is_within)
    }

    /// True if [`Self::block`] may count a block that ends in the open window: the core commits at most [`MAX_COMMIT_WIDTH`]
    /// instructions a cycle.
    #[inline(always)]
    pub(crate) fn takes_blocks(&self) -> bool {
        self.width <= MAX_COMMIT_WIDTH as u64
    }

    /// Counts a block. Among its spans without a commit, only the stalls in `stalled` are counted here.
    #[inline(always)]
    pub(crate) fn block(&mut self, block: &Block<'_>, stalled: &Stalled) {
        let end = block.cycle + block.cycles;
        self.windows.cycles += block.cycles;
        self.windows.end = end + 1;
        self.retire(block.records.len(), block.starts.count_ones().into());
        for (cycles, (category, slot)) in stalled.iter().zip(STALLS) {
            self.windows.now.cycles[category as usize] += cycles;
            self.windows.now.slots[slot] += self.width * cycles;
        }
        let first = &block.records[0];
        self.next(first, block.cycle + u64::from(first.commit_delta));
        self.leave_between(block);
        let last = start_of(block.starts, block.records.len() - 1);
        self.leave_over(&block.records[last..], end);
    }

    /// Counts the slots that a block's groups leave unused, except the last group.
    #[inline(always)]
    fn leave_between(&mut self, block: &Block<'_>) {
        let (width, now) = (self.width as usize, &mut self.windows.now);
        let (records, starts) = (block.records, block.starts);
        let ends = starts & (starts - 1) & !block.ends_of(width);
        let lost = bits(ends).map(move |end| {
            let start = start_of(starts, end - 1);
            let (first, last, next) = (&records[start], &records[end - 1], &records[end]);
            let (inst, slot) = left_over(first, last, next, next.commit_delta.into());
            let slots = width.saturating_sub(end - start);
            now.slots[slot] += slots as u64;
            (inst, (inst, slot, slots as u8))
        });
        self.lost.add_few(lost);
    }

    /// Counts a span in which nothing commits. A stall is added only to the open window: [`Self::finish`] is given the stalled slots of each
    /// instruction.
    #[inline]
    pub(crate) fn waiting(&mut self, span: &Span<'_>, static_info: &[StaticInfo]) {
        let Some(record) = span.records.first() else {
            return;
        };
        let class = || match static_info.get(record.inst.0 as usize) {
            Some(static_info) => static_info.class,
            None => Class::Int,
        };
        let category = component(span.state, record).category_of(class);
        self.windows.now.cycles[category as usize] += span.cycles;
        let slots = self.width * span.cycles;
        match span.state {
            State::Stalled => self.windows.now.slots[backend(record)] += slots,
            State::Flushed => self.lose(self.process, record.inst, flush(record), slots),
            State::Drained => {
                let waited = u64::from(record.decode_lead()).saturating_sub(DECODE_TO_ROB);
                let refused = self.width * waited.min(span.cycles);
                self.lose(self.process, record.inst, refusal(record), refused);
                self.lose(self.process, record.inst, latency(record), slots - refused);
            }
            State::Computing | State::Idle => {}
        }
    }

    fn computing(&mut self, span: &Span<'_>) {
        self.retire(span.records.len(), 1);
        self.leave_over(span.records, span.commit);
    }

    /// Counts `records` that commit in `cycles` cycles.
    fn retire(&mut self, records: usize, cycles: u64) {
        self.windows.now.slots[Slot::Retiring] += records as u64;
        self.windows.now.cycles[Category::Execution as usize] += cycles;
    }

    /// Counts the slots that `records`, which commit in one cycle, leave unused.
    #[inline]
    fn leave_over(&mut self, records: &[CommitRecord], commit: u64) {
        let slots = self.width.saturating_sub(records.len() as u64);
        let (Some(first), Some(last)) = (records.first(), records.last()) else {
            return;
        };
        if last.redirect() != Redirect::None {
            self.lose(self.process, last.inst, flush(last), slots);
        } else if slots > 0 {
            self.open = Some(Open {
                process: self.process,
                cycle: commit,
                slots,
                first: *first,
                last: *last,
            });
        }
    }

    /// Charges the open slots, now that the next record to leave the ROB is known. The record leaves in cycle `commit`, and may be one that traps.
    pub(crate) fn next(&mut self, next: &CommitRecord, commit: u64) {
        let Some(open) = self.open.take() else { return };
        let (inst, slot) = left_over(&open.first, &open.last, next, commit - open.cycle);
        // Another process's code did not hold up this one's.
        let charged = if open.process == self.process { inst } else { open.last.inst };
        self.lose(open.process, charged, slot, open.slots);
    }

    /// Charges the open slots where the stream or the region ends, and no record follows. They are less than a cycle's slots, and count as fetch
    /// bandwidth.
    pub(crate) fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.lose(open.process, open.last.inst, Slot::FetchBandwidth, open.slots);
        }
    }

    /// Takes the slots of each process since the last call, of a unit that ends here.
    pub(crate) fn take_since_last(&mut self) -> impl Iterator<Item = (ProcessId, Slots)> {
        self.close();
        self.windows.flush(self.process);
        self.windows.since_last.drain(..)
    }

    fn lose(&mut self, process: usize, inst: InstId, slot: Slot, slots: u64) {
        if slots == 0 {
            return;
        }
        self.lost.add_to(process, inst, slot, slots);
        if process == self.process {
            self.windows.now.slots[slot] += slots;
        } else {
            let mut spent = SlotsAndCycles::default();
            spent.slots[slot] = slots;
            self.windows.add(process, spent);
        }
    }

    /// Packs the counts of inactive processes.
    pub(crate) fn pack_cold(
        &mut self,
        processes: &[ProcessId],
        is_cold: impl Fn(ProcessId) -> bool,
    ) {
        let processes = processes.iter().map(|process| process.0 as usize);
        let is_cold = |process| is_cold(ProcessId(process as u32));
        self.lost.pack_cold(processes, is_cold);
    }

    /// The result; `commits` and `stalls` are each process's, by instruction, as the Oracle counts them.
    pub(crate) fn finish<'a>(mut self, commits: &'a [Packed], stalls: &'a [Packed]) -> TopDown {
        self.close();
        self.windows.flush(self.process);
        self.windows.cut();
        let width = self.width;
        let slot = |record: &CommitRecord| Some((backend(record) as u64, width));
        let number = |inst| inst << SLOT_BITS | Slot::Retiring as u64;
        let mut lost = self.lost.owners();
        let owners = lost.count().max(commits.len()).max(stalls.len());
        let by_process = packed(owners, |process, all| {
            lost.next_into(all);
            let of = |list: &'a [Packed]| list.get(process).into_iter().flat_map(Packed::iter);
            all.extend(of(commits).map(|(inst, count)| (number(inst), count)));
            all.extend(counted_as(of(stalls), SLOT_BITS, slot));
        });
        TopDown { width: width as u32, by_process, windows: self.windows.list }
    }
}

/// Time spent over time: windows of equal length, as many as fit a picture. They end where spans do.
#[derive(Debug)]
struct Windows {
    length: u64,
    /// First cycle of the open window, once there is one.
    start: Option<u64>,
    /// First cycle after what was counted.
    end: u64,
    /// Profiled cycles in the open window.
    cycles: u64,
    /// Slots and cycles of the process that runs, since it was selected or the window began.
    now: SlotsAndCycles,
    /// Slots and cycles of all processes in the open window, except `now`.
    processes: Vec<(ProcessId, SlotsAndCycles)>,
    /// Slots of all processes since they were taken last, except `now`.
    since_last: Vec<(ProcessId, Slots)>,
    list: Vec<SlotWindow>,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            length: FIRST_WINDOW,
            start: None,
            end: 0,
            cycles: 0,
            now: SlotsAndCycles::default(),
            processes: Vec::new(),
            since_last: Vec::new(),
            list: Vec::new(),
        }
    }
}

impl Windows {
    /// Begins a window at `cycle`, the next cycle to be counted, if none is open or the open one is over. True if it was over.
    #[inline]
    fn reach(&mut self, cycle: u64, process: usize) -> bool {
        let start = *self.start.get_or_insert(cycle);
        let is_over = cycle - start >= self.length;
        if is_over {
            self.flush(process);
            self.cut();
            self.start = Some(cycle);
        }
        is_over
    }

    fn of(&mut self, process: usize) -> &mut SlotsAndCycles {
        let id = ProcessId(process as u32);
        let at = match self.processes.binary_search_by_key(&id, |(process, _)| *process) {
            Ok(at) => at,
            Err(at) => {
                self.processes.insert(at, (id, SlotsAndCycles::default()));
                at
            }
        };
        &mut self.processes[at].1
    }

    fn flush(&mut self, process: usize) {
        let now = std::mem::take(&mut self.now);
        if now != SlotsAndCycles::default() {
            self.add(process, now);
        }
    }

    fn add(&mut self, process: usize, spent: SlotsAndCycles) {
        *self.of(process) += spent;
        let process = ProcessId(process as u32);
        match self.since_last.binary_search_by_key(&process, |(process, _)| *process) {
            Ok(at) => self.since_last[at].1 += spent.slots,
            Err(at) => self.since_last.insert(at, (process, spent.slots)),
        }
    }

    fn cut(&mut self) {
        let Some(start) = self.start.take() else {
            return;
        };
        self.list.push(SlotWindow {
            start,
            end: self.end,
            cycles: std::mem::take(&mut self.cycles),
            processes: std::mem::take(&mut self.processes),
        });
        if self.list.len() == 2 * WINDOWS {
            self.length *= 2;
            let pairs = self.list.chunks(2).map(|pair| {
                let mut both =
                    Windows { processes: pair[0].processes.clone(), ..Windows::default() };
                for (process, spent) in &pair[1].processes {
                    *both.of(process.0 as usize) += *spent;
                }
                SlotWindow {
                    start: pair[0].start,
                    end: pair[1].end,
                    cycles: pair[0].cycles + pair[1].cycles,
                    processes: both.processes,
                }
            });
            self.list = pairs.collect();
        }
    }
}
