//! What the half that keeps time gets to know of the path.

use std::slice::Iter;

use isa::{Operand, PageWalk, RUN_STEPS, StaticId};

use super::stores::{Match, STORES};
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

    /// One after a redirect, in the line given.
    pub fn redirected(line: u64) -> Self {
        Self::new(line, false, false)
    }

    /// The same of one whose page is not in the ITLB.
    #[inline(always)]
    pub(super) fn that_walks(self) -> Self {
        Self(self.0 | Self::WALKS)
    }

    /// The line that it is read from.
    #[inline(always)]
    pub fn line(self) -> u64 {
        self.0 & !Self::FLAGS
    }

    /// No branch, jump or flush ended the packet before: it follows that one in memory.
    #[inline(always)]
    pub fn sequential(self) -> bool {
        self.0 & Self::SEQUENTIAL != 0
    }

    /// The instruction began in the packet before: that one went by without it.
    #[inline(always)]
    pub fn straddles(self) -> bool {
        self.0 & Self::STRADDLES != 0
    }

    /// Its page is not in the ITLB.
    #[inline(always)]
    pub fn walks(self) -> bool {
        self.0 & Self::WALKS != 0
    }
}

/// A load or store to memory, as the ones before it leave it to be found: its physical address, and what it finds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found(u64);

impl Found {
    const WALKS: u64 = 1 << 63;
    const COVERS: u64 = 1 << 62;
    const AGO: u32 = 56;
    const PA: u64 = (1 << Self::AGO) - 1;

    #[inline(always)]
    pub(super) fn new(pa: u64, store: Match, walks: bool) -> Self {
        let covers = if store.covers { Self::COVERS } else { 0 };
        let walks = if walks { Self::WALKS } else { 0 };
        Self(pa & Self::PA | u64::from(store.ago) << Self::AGO | covers | walks)
    }

    /// Its physical address.
    #[inline(always)]
    pub fn pa(self) -> u64 {
        self.0 & Self::PA
    }

    /// The store before it, for a load.
    #[inline(always)]
    pub fn store(self) -> Match {
        Match {
            ago: (self.0 >> Self::AGO) as u8 % STORES as u8,
            covers: self.0 & Self::COVERS != 0,
        }
    }

    /// Its page is not in the data TLB.
    #[inline(always)]
    pub fn walks(self) -> bool {
        self.0 & Self::WALKS != 0
    }
}

/// What a page walk for an address reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reads {
    pub va: u64,
    pub walk: PageWalk,
}

/// Of an instruction in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step(u64);

impl Step {
    /// It starts a packet.
    const STARTS: u64 = 1 << 63;

    /// The instruction.
    #[inline(always)]
    pub fn id(self) -> StaticId {
        StaticId(self.0 as u32)
    }

    /// It starts a packet.
    #[inline(always)]
    pub fn starts(self) -> bool {
        self.0 & Self::STARTS != 0
    }
}

/// What was followed: all that the other half has to know of it. Both halves may be on processors of their own: it
/// is written and read front to back, as those like it best.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// For each instruction of a run its number, and whether it starts a packet, then that packet, then what it finds,
    /// or what is made of it.
    words: Vec<u64>,
    pub(super) operands: Vec<Operand>,
    /// What walks read: those of packets, and those of data accesses.
    pub(super) packet_walks: Vec<Reads>,
    pub(super) data_walks: Vec<Reads>,
}

/// How many words a run takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words(u32);

impl Followed {
    /// Takes the words of a run.
    #[inline(always)]
    pub(super) fn take(&mut self, written: Writer<'_>) -> Words {
        let count = written.count.min(Draft::WORDS);
        self.words.extend_from_slice(&written.words[..count]);
        Words(count as u32)
    }

    /// Reads it.
    #[inline(always)]
    pub fn read(&self) -> Reader<'_> {
        Reader {
            words: &self.words,
            operands: self.operands.iter(),
            packet_walks: self.packet_walks.iter(),
            data_walks: self.data_walks.iter(),
        }
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.words.clear();
        self.operands.clear();
        self.packet_walks.clear();
        self.data_walks.clear();
    }
}

/// Room for the words of a run.
pub(super) struct Draft([u64; Draft::WORDS]);

impl Draft {
    /// An instruction has four at most.
    const WORDS: usize = (4 * RUN_STEPS).next_power_of_two();

    pub fn new() -> Self {
        Self([0; Self::WORDS])
    }

    #[inline(always)]
    pub fn begin(&mut self) -> Writer<'_> {
        let Self(words) = self;
        Writer { words, count: 0 }
    }
}

/// Writes the words of a run.
pub(super) struct Writer<'a> {
    words: &'a mut [u64; Draft::WORDS],
    count: usize,
}

impl Writer<'_> {
    #[inline(always)]
    fn put(&mut self, word: u64) {
        self.words[self.count % Draft::WORDS] = word;
        self.count += 1;
    }

    /// An instruction that starts a packet.
    #[inline(always)]
    pub fn start(&mut self, id: StaticId, Packet(packet): Packet) {
        self.put(u64::from(id.0) | Step::STARTS);
        self.put(packet);
    }

    /// One that does not.
    #[inline(always)]
    pub fn go_on(&mut self, id: StaticId) {
        self.put(id.0.into());
    }

    /// What the last one, a load or store, finds.
    #[inline(always)]
    pub fn find(&mut self, Found(found): Found) {
        self.put(found);
    }

    /// What is made of the last one, a branch or jump.
    #[inline(always)]
    pub fn forecast(&mut self, forecast: Forecast) {
        let [at, rest] = forecast.words();
        self.put(at);
        self.put(rest);
    }
}

/// Reads [`Followed`], each of what belongs to an instruction in turn.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    words: &'a [u64],
    operands: Iter<'a, Operand>,
    packet_walks: Iter<'a, Reads>,
    data_walks: Iter<'a, Reads>,
}

impl<'a> Reader<'a> {
    /// The steps of the next run.
    #[inline(always)]
    pub fn steps(&mut self, Words(count): Words) -> Steps<'a> {
        // As many as were written.
        let (steps, rest) = self
            .words
            .split_at_checked(count as usize)
            .unwrap_or((self.words, &[]));
        self.words = rest;
        Steps(steps.iter())
    }

    /// The operand of the next division.
    #[inline(always)]
    pub fn operand(&mut self) -> Operand {
        self.operands.next().copied().unwrap_or_default()
    }

    /// What the walk for the packet reads.
    #[inline(always)]
    pub fn packet_walk(&mut self, packet: Packet) -> Option<&'a Reads> {
        match packet.walks() {
            true => self.packet_walks.next(),
            false => None,
        }
    }

    /// What the walk for a data access reads.
    #[inline(always)]
    pub fn data_walk(&mut self, found: Found) -> Option<&'a Reads> {
        match found.walks() {
            true => self.data_walks.next(),
            false => None,
        }
    }
}

/// The instructions of a run, and what follows each.
pub(crate) struct Steps<'a>(Iter<'a, u64>);

impl Steps<'_> {
    #[inline(always)]
    fn word(&mut self) -> u64 {
        // What was written is read, no more.
        self.0.next().copied().unwrap_or(0)
    }

    /// The next instruction.
    #[inline(always)]
    pub fn next(&mut self) -> Option<Step> {
        self.0.next().map(|&word| Step(word))
    }

    /// The packet that it starts.
    #[inline(always)]
    pub fn packet(&mut self) -> Packet {
        Packet(self.word())
    }

    /// What a load or store finds.
    #[inline(always)]
    pub fn found(&mut self) -> Found {
        Found(self.word())
    }

    /// What is made of a branch or jump.
    #[inline(always)]
    pub fn forecast(&mut self) -> Forecast {
        let first = self.word();
        Forecast::from_words([first, self.word()])
    }
}

/// The same of one instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    pub forecast: Forecast,
    pub found: Found,
}
