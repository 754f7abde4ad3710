//! Records of instruction sampling (Smpdis, Sspdis) in perf's terms, as the kernel's `asm/pdis_record.h` makes samples of
//! them.

use commit_trace::{AccessKind, DataSource};
use sampling_units::pdis::{RECORD_BYTES, header};

use super::DataSrc;
use super::cursor::Cursor;

/// `pdislat` has four latencies of 12 bits each (total, dispatch, issue, execution), and a bit that says whether there is an
/// execution.
const LATENCY_BITS: u32 = 12;
const EXECUTED: u64 = 1 << 62;
const LATENCY: u64 = (1 << LATENCY_BITS) - 1;

/// `union perf_mem_data_src`: `mem_op`, `mem_snoop`, `mem_lock` and `mem_dtlb`.
const LOAD: u64 = 2;
const STORE: u64 = 4;
const EXEC: u64 = 16;
const SNOOP_NONE: u64 = 2 << 19;
const SNOOP_HIT: u64 = 4 << 19;
const SNOOP_MISS: u64 = 8 << 19;
const SNOOP_HITM: u64 = 16 << 19;
const SNOOP_NA: u64 = 1 << 19;
const LOCK_NA: u64 = 1 << 24;
const LOCKED: u64 = 2 << 24;
const BLOCKED_NA: u64 = 1 << 40;
const TLB_HIT: u64 = 2 << 26;
const TLB_MISS: u64 = 4 << 26;
const TLB_L1: u64 = 8 << 26;
const TLB_L2: u64 = 16 << 26;
const TLB_WALKER: u64 = 32 << 26;
/// `mem_lvl`: besides a level, whether it hit.
const HIT: u64 = 2 << 5;
const MISS: u64 = 4 << 5;
const IO: u64 = 1 << 12 << 5;
const NO_LEVEL: u64 = 1 << 5 | 15 << 33;
const L1: u64 = level(3, 1);
const L3: u64 = level(6, 3);
/// `PERF_MEM_NA`.
const NOTHING: u64 = 1 | NO_LEVEL | SNOOP_NA | LOCK_NA | 1 << 26;

/// A level: its bit in `mem_lvl`, and its `mem_lvl_num`.
const fn level(bit: u32, number: u64) -> u64 {
    1 << bit << 5 | number << 33
}

impl DataSrc {
    /// Returns the data source that the guest's driver makes of the first word of a record.
    pub fn of_record(header: u64) -> Self {
        let record = PdisRecord { header, ..PdisRecord::default() };
        record.data_src()
    }
}

/// The words of a record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PdisRecord {
    header: u64,
    pub pc: u64,
    pub time: u64,
    latencies: u64,
    address1: u64,
    address2: u64,
}

impl PdisRecord {
    /// Size of a record, in bytes.
    pub(crate) const BYTES: usize = RECORD_BYTES as usize;

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut words = Cursor(bytes);
        Some(Self {
            header: words.u64()?,
            pc: words.u64()?,
            time: words.u64()?,
            latencies: words.u64()?,
            address1: words.u64()?,
            address2: words.u64()?,
        })
    }

    fn has(&self, bits: u64) -> bool {
        self.header & bits != 0
    }

    fn kind(&self) -> u64 {
        self.header & 7
    }

    /// True if the sampled instruction retired, so that the record's address is exactly that of the selected instruction.
    pub(crate) fn is_exact(&self) -> bool {
        !self.has(header::FLUSHED | header::TRAPPED | header::NO_PC)
    }

    /// Returns an address that tells the privilege mode: the instruction's, or on a wrong path that of the instruction that
    /// flushed it.
    pub(crate) fn mode_address(&self) -> u64 {
        match self.has(header::NO_PC) {
            true => self.address1,
            false => self.pc,
        }
    }

    /// Returns the address that is accessed, jumped to or fetched; for a flushed instruction, that of the one that flushed it.
    pub(crate) fn address(&self) -> u64 {
        match self.kind() {
            header::TYPE_FETCH => self.pc,
            _ if self.has(header::ADR1V) => self.address1,
            _ => 0,
        }
    }

    pub(crate) fn physical(&self) -> u64 {
        let known = self.has(header::ADR2V) && !self.has(header::FLUSHED);
        match known && self.kind() != header::TYPE_TRANSFER {
            true => self.address2 << 2 | self.address() & 3,
            false => 0,
        }
    }

    fn latency(&self, number: u32) -> u64 {
        self.latencies >> (LATENCY_BITS * number) & LATENCY
    }

    /// Returns the cycles of the execution, those from selection to retirement, and those from the end of execution to
    /// retirement.
    pub(crate) fn weights(&self) -> (u64, u16, u16) {
        let total = self.latency(0);
        let execution = match self.latencies & EXECUTED != 0 {
            true => self.latency(3),
            false => total,
        };
        // A store executes on when it has retired.
        let until = self.latency(1) + self.latency(2) + execution;
        (execution, total as u16, total.saturating_sub(until) as u16)
    }

    pub(crate) fn data_src(&self) -> DataSrc {
        const LOADED: u64 = AccessKind::Load as u64;
        const STORED: u64 = AccessKind::Store as u64;
        const ATOMIC: u64 = AccessKind::Atomic as u64;
        if self.has(header::FLUSHED) {
            return DataSrc(NOTHING);
        }
        let plain = LOCK_NA | BLOCKED_NA;
        let data = self.tlb(header::L1TLBMISS);
        DataSrc(match self.kind() {
            LOADED => LOAD | plain | self.source() | data,
            STORED => STORE | plain | self.source_of_store() | data,
            ATOMIC => LOAD | STORE | LOCKED | BLOCKED_NA | self.source() | data,
            header::TYPE_FETCH => EXEC | plain | self.source() | self.tlb(header::ITMISS),
            _ => NOTHING,
        })
    }

    /// Returns the level that answered, if it is known. Caches that harts share are the third level.
    fn answered(&self) -> Option<u64> {
        let number = self.header >> header::DSRC_SHIFT & 15;
        Some(match DataSource::of_number(number as u8)? {
            DataSource::Unknown => return None,
            DataSource::L1 | DataSource::StoreQueue => L1 | SNOOP_NONE,
            DataSource::InFlight => level(4, 12) | SNOOP_NONE,
            DataSource::L2 => level(5, 2) | SNOOP_NONE,
            DataSource::Llc => L3 | SNOOP_NONE,
            DataSource::Memory => level(7, 13) | SNOOP_MISS,
            DataSource::PeerClean => L3 | SNOOP_HIT,
            DataSource::PeerModified => L3 | SNOOP_HITM,
            DataSource::Device => level(12, 10) | SNOOP_NONE,
            DataSource::Upgrade => L1 | SNOOP_HIT,
        })
    }

    fn source(&self) -> u64 {
        match self.answered() {
            Some(level) => level | HIT,
            None if self.has(header::LLMISS) => L3 | MISS | SNOOP_NA,
            None if self.has(header::L1MISS) => L1 | MISS | SNOOP_NA,
            None => NO_LEVEL | SNOOP_NA,
        }
    }

    /// Returns the level and snoop of a store. perf asks of stores whether they hit the first level.
    fn source_of_store(&self) -> u64 {
        let snoops = SNOOP_NONE | SNOOP_HIT | SNOOP_MISS | SNOOP_HITM;
        match self.answered() {
            Some(level) if self.has(header::L1MISS) && level & IO == 0 => {
                L1 | MISS | level & snoops
            }
            _ => self.source(),
        }
    }

    fn tlb(&self, first_miss: u64) -> u64 {
        match (self.has(first_miss), self.has(header::LLTLBMISS)) {
            (false, _) => TLB_L1 | TLB_HIT,
            (true, false) => TLB_L2 | TLB_HIT,
            // The walk of an instruction that trapped may have found nothing.
            (true, true) if self.has(header::TRAPPED) => TLB_WALKER | TLB_MISS,
            (true, true) => TLB_WALKER | TLB_HIT,
        }
    }
}
