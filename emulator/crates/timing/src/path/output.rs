//! What the path tells the pipeline: per instruction its fetch packet, its prediction, its load or store.

use std::slice::Iter;

use isa::{MemAccess, Operand, PageWalk, RUN_STEPS, Run, StaticId};

use super::stores::{STORES, StoreMatch};
use crate::predict::Forecast;

/// A fetch packet, as the instruction that starts it finds it: the line that it is read from, and how it begins.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packet(u64);

impl Packet {
    const SEQUENTIAL: u64 = 1 << 63;
    const STRADDLES: u64 = 1 << 62;
    const WALKS: u64 = 1 << 61;
    const FLAGS: u64 = Self::SEQUENTIAL | Self::STRADDLES | Self::WALKS;

    #[inline(always)]
    pub(super) fn new(line: u64, sequential: bool, straddles: bool) -> Self {
        let flag = |flag: u64, set: bool| if set { flag } else { 0 };
        Self(
            line & !Self::FLAGS
                | flag(Self::SEQUENTIAL, sequential)
                | flag(Self::STRADDLES, straddles),
        )
    }

    /// Returns the packet after a redirect, in line `line`.
    pub(crate) fn redirected(line: u64) -> Self {
        Self::new(line, false, false)
    }

    /// Returns the packet as one whose page is not in the ITLB.
    #[inline(always)]
    pub(super) fn with_itlb_miss(self) -> Self {
        Self(self.0 | Self::WALKS)
    }

    /// Returns the line that the packet is read from.
    #[inline(always)]
    pub(crate) fn line(self) -> u64 {
        self.0 & !Self::FLAGS
    }

    /// Returns true if no branch, jump or flush ended the packet before: this one follows that one in memory.
    #[inline(always)]
    pub(crate) fn sequential(self) -> bool {
        self.0 & Self::SEQUENTIAL != 0
    }

    /// Returns true if the instruction began in the packet before, which went by without it.
    #[inline(always)]
    pub(crate) fn straddles(self) -> bool {
        self.0 & Self::STRADDLES != 0
    }

    /// Returns true if the packet's page is not in the ITLB.
    #[inline(always)]
    pub(crate) fn walks(self) -> bool {
        self.0 & Self::WALKS != 0
    }
}

/// A load or store as the LSU needs it: physical address, the store that it may be forwarded from, and whether its page
/// misses in the data TLB. The path writes it, the pipeline reads it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LsuAccess(u64);

impl LsuAccess {
    const WALKS: u64 = 1 << 63;
    const COVERS: u64 = 1 << 62;
    const AGO: u32 = 56;
    const PA: u64 = (1 << Self::AGO) - 1;

    #[inline(always)]
    pub(super) fn new(pa: u64, store: StoreMatch, walks: bool) -> Self {
        let covers = if store.covers { Self::COVERS } else { 0 };
        let walks = if walks { Self::WALKS } else { 0 };
        Self(pa & Self::PA | u64::from(store.ago) << Self::AGO | covers | walks)
    }

    /// Returns the physical address of the access.
    #[inline(always)]
    pub(crate) fn pa(self) -> u64 {
        self.0 & Self::PA
    }

    /// Returns the store that a load finds before it.
    #[inline(always)]
    pub(crate) fn store(self) -> StoreMatch {
        StoreMatch {
            ago: (self.0 >> Self::AGO) as u8 % STORES as u8,
            covers: self.0 & Self::COVERS != 0,
        }
    }

    /// Returns true if the page of the access is not in the data TLB.
    #[inline(always)]
    pub(crate) fn walks(self) -> bool {
        self.0 & Self::WALKS != 0
    }
}

/// The memory accesses of a page walk for an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkReads {
    pub va: u64,
    pub walk: PageWalk,
}

/// An instruction of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Step(u32);

impl Step {
    /// Flag of an instruction that starts a packet. No instruction has such a number: the micro-ops of so many take
    /// more memory than there is.
    const STARTS: u32 = 1 << 31;

    #[inline(always)]
    pub(super) fn starts_packet(&mut self) {
        self.0 |= Self::STARTS;
    }

    /// Returns the number of the instruction.
    #[inline(always)]
    pub(crate) fn id(self) -> StaticId {
        StaticId(self.0 & !Self::STARTS)
    }

    /// Returns true if the instruction starts a packet.
    #[inline(always)]
    pub(crate) fn starts(self) -> bool {
        self.0 & Self::STARTS != 0
    }
}

/// What the path tells the pipeline of one batch. Path and pipeline may run on different processors. The output is written and read from front to
/// back, which costs the host's caches least.
#[derive(Debug, Default)]
pub(crate) struct PathOutput {
    steps: Vec<Step>,
    /// For each instruction of a run: the packet that it starts, then the forecast of a branch or jump.
    words: Vec<u64>,
    /// What loads and stores find.
    accesses: Vec<LsuAccess>,
    pub(super) operands: Vec<Operand>,
    /// The accesses of runs themselves, while somebody observes.
    pub(super) observed: Vec<MemAccess>,
    /// What the walks for packets read.
    pub(super) packet_walks: Vec<WalkReads>,
    /// What the walks for data accesses read.
    pub(super) data_walks: Vec<WalkReads>,
}

/// How many steps, words and accesses belong to a run; 16 bits each. In one word, it goes from function to function in
/// a register. (In three it went by way of memory, and waited until the host had written all that stands before it.)
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent(u64);

impl Extent {
    #[inline(always)]
    fn new(steps: usize, words: usize, accesses: usize) -> Self {
        const { assert!(Words::MOST <= u16::MAX as usize) };
        Self(steps as u64 | (words as u64) << 16 | (accesses as u64) << 32)
    }

    #[inline(always)]
    fn steps(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    #[inline(always)]
    fn words(self) -> usize {
        (self.0 >> 16 & 0xffff) as usize
    }

    #[inline(always)]
    fn accesses(self) -> usize {
        (self.0 >> 32) as usize
    }
}

impl PathOutput {
    /// Takes what was written of a run.
    #[inline(always)]
    pub(super) fn take(&mut self, steps: &[Step], words: &[u64], accesses: &[LsuAccess]) -> Extent {
        self.steps.extend_from_slice(steps);
        self.words.extend_from_slice(words);
        self.accesses.extend_from_slice(accesses);
        Extent::new(steps.len(), words.len(), accesses.len())
    }

    /// Returns a reader of the output.
    #[inline(always)]
    pub(crate) fn read(&self) -> Reader<'_> {
        Reader {
            steps: &self.steps,
            words: &self.words,
            accesses: &self.accesses,
            operands: self.operands.iter(),
            observed: self.observed.iter(),
            packet_walks: self.packet_walks.iter(),
            data_walks: self.data_walks.iter(),
        }
    }

    /// Empties the output.
    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.words.clear();
        self.accesses.clear();
        self.operands.clear();
        self.observed.clear();
        self.packet_walks.clear();
        self.data_walks.clear();
    }
}

/// Room for what is written of a run.
pub(super) struct Draft {
    steps: [Step; RUN_STEPS],
    words: [u64; Words::MOST],
    accesses: [LsuAccess; RUN_STEPS],
}

impl Draft {
    pub(super) fn new() -> Self {
        Self {
            steps: [Step::default(); RUN_STEPS],
            words: [0; Words::MOST],
            accesses: [LsuAccess::default(); RUN_STEPS],
        }
    }

    /// Returns the steps of a run, none of which starts a packet yet; the writer of its words; and the room for what its accesses find.
    #[inline(always)]
    pub(super) fn begin(
        &mut self,
        run: &Run<'_>,
    ) -> (&mut [Step], Words<'_>, &mut [LsuAccess; RUN_STEPS]) {
        let steps = &mut self.steps[..run.steps.len()];
        for (step, of_run) in steps.iter_mut().zip(run.steps) {
            *step = Step(of_run.id.0);
        }
        let words = &mut self.words;
        (steps, Words { words, count: 0 }, &mut self.accesses)
    }
}

/// Writes the words of a run.
pub(super) struct Words<'a> {
    words: &'a mut [u64; Words::MOST],
    count: usize,
}

impl Words<'_> {
    /// Most words of a run: an instruction has three at most.
    const MOST: usize = (3 * RUN_STEPS).next_power_of_two();

    pub(super) fn written(&self) -> &[u64] {
        &self.words[..self.count.min(Self::MOST)]
    }

    #[inline(always)]
    fn put(&mut self, word: u64) {
        self.words[self.count % Self::MOST] = word;
        self.count += 1;
    }

    /// Writes the packet that the next instruction starts.
    #[inline(always)]
    pub(super) fn packet(&mut self, Packet(packet): Packet) {
        self.put(packet);
    }

    /// Writes the forecast of a branch or jump.
    #[inline(always)]
    pub(super) fn forecast(&mut self, forecast: Forecast) {
        let [at, rest] = forecast.words();
        self.put(at);
        self.put(rest);
    }
}

/// Reads a [`PathOutput`], what belongs to each instruction in turn.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    steps: &'a [Step],
    words: &'a [u64],
    accesses: &'a [LsuAccess],
    operands: Iter<'a, Operand>,
    observed: Iter<'a, MemAccess>,
    packet_walks: Iter<'a, WalkReads>,
    data_walks: Iter<'a, WalkReads>,
}

impl<'a> Reader<'a> {
    /// Reads the next run.
    #[inline(always)]
    pub(crate) fn run(&mut self, extent: Extent) -> Steps<'a> {
        Steps {
            steps: take(&mut self.steps, extent.steps()),
            words: take(&mut self.words, extent.words()),
            accesses: take(&mut self.accesses, extent.accesses()),
        }
    }

    /// Reads the operand of the next division.
    #[inline(always)]
    pub(crate) fn operand(&mut self) -> Operand {
        self.operands.next().copied().unwrap_or_default()
    }

    /// Reads the next access of a run, while somebody observes.
    #[inline(always)]
    pub(crate) fn observed(&mut self) -> MemAccess {
        self.observed.next().copied().unwrap_or_default()
    }

    /// Returns what the walk for the packet reads, if there is one.
    #[inline(always)]
    pub(crate) fn packet_walk(&mut self, packet: Packet) -> Option<&'a WalkReads> {
        match packet.walks() {
            true => self.packet_walks.next(),
            false => None,
        }
    }

    /// Returns what the walk for a data access reads, if there is one.
    #[inline(always)]
    pub(crate) fn data_walk(&mut self, found: LsuAccess) -> Option<&'a WalkReads> {
        match found.walks() {
            true => self.data_walks.next(),
            false => None,
        }
    }
}

/// Takes the first `count` elements.
#[inline(always)]
fn take<'a, T>(all: &mut &'a [T], count: usize) -> Iter<'a, T> {
    // At least `count` elements were written.
    let (first, rest) = all.split_at_checked(count).unwrap_or_default();
    *all = rest;
    first.iter()
}

/// The instructions of a run, and what belongs to each.
#[derive(Clone)]
pub(crate) struct Steps<'a> {
    steps: Iter<'a, Step>,
    words: Iter<'a, u64>,
    accesses: Iter<'a, LsuAccess>,
}

impl Steps<'_> {
    /// Returns the next instruction.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Step> {
        self.steps.next().copied()
    }

    #[inline(always)]
    fn word(&mut self) -> u64 {
        // What was written is read, no more.
        self.words.next().copied().unwrap_or(0)
    }

    /// Reads the packet that the instruction starts.
    #[inline(always)]
    pub(crate) fn packet(&mut self) -> Packet {
        Packet(self.word())
    }

    /// Reads what a load or store finds.
    #[inline(always)]
    pub(crate) fn found(&mut self) -> LsuAccess {
        self.accesses.next().copied().unwrap_or_default()
    }

    /// Reads the forecast of a branch or jump.
    #[inline(always)]
    pub(crate) fn forecast(&mut self) -> Forecast {
        let first = self.word();
        Forecast::from_words([first, self.word()])
    }
}

/// What the path tells the pipeline of one instruction that is no part of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InstOutput {
    pub forecast: Forecast,
    pub found: LsuAccess,
}
