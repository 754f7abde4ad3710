//! The sample record of Smpdis/Sspdis ("Sample Record").

use commit_trace::{AccessKind, DataSource, Detail, Translation};

use crate::ctr::Kind;
use crate::{Observed, Outcome};

/// Bytes of a record in memory.
pub const RECORD_BYTES: u64 = 64;
/// Number of latencies in a record.
pub const LATENCIES: usize = 5;

/// Fields of `pdishdrev`, the first word.
pub mod header {
    /// Field `TYPE`: [`commit_trace::AccessKind`], or one of the following.
    pub const TYPE: u64 = 7;
    /// Value of `TYPE` for a fetch. The draft reserves 5.
    pub const TYPE_FETCH: u64 = 5;
    /// Value of `TYPE` for a control transfer.
    pub const TYPE_TRANSFER: u64 = 4;
    /// The fifth word has an address.
    pub const ADR1V: u64 = 1 << 32;
    /// The sixth word has an address.
    pub const ADR2V: u64 = 1 << 33;
    /// The instruction was thrown away by an older one.
    pub const FLUSHED: u64 = 1 << 34;
    /// What threw the instruction away, in two bits: 1 a misprediction, 2 a load that failed its order, 3 something else.
    pub const FLUSH_SHIFT: u32 = 35;
    /// Only some of the instruction's life was sampled.
    pub const PARTIAL: u64 = 1 << 37;
    /// The instruction's packet missed in the ITLB.
    pub const ITMISS: u64 = 1 << 39;
    /// The instruction's packet missed in the L1 instruction cache.
    pub const ICMISS: u64 = 1 << 40;
    /// [`ITMISS`] and [`ICMISS`] are known.
    pub const ICITV: u64 = 1 << 41;
    /// Loads and stores: the access missed in the first-level TLB.
    pub const L1TLBMISS: u64 = 1 << 42;
    /// Loads and stores: the access missed in the second-level TLB.
    pub const LLTLBMISS: u64 = 1 << 43;
    /// Loads and stores: the access missed in the L1 data cache.
    pub const L1MISS: u64 = 1 << 44;
    /// Loads and stores: the access missed in the last-level cache.
    pub const LLMISS: u64 = 1 << 45;
    /// Field `DSRC`: [`commit_trace::DataSource`].
    pub const DSRC_SHIFT: u32 = 46;
    /// Control transfers: bit `39 + n` is set for `ctrdata.TYPE` n.
    pub const TRANSFER_SHIFT: u32 = 39;
    /// Control transfers: the transfer was mispredicted.
    pub const MISPRED: u64 = 1 << 55;
    /// Ours, in WPRI bits: the instruction trapped or is executed again, and did not retire.
    pub const TRAPPED: u64 = 1 << 56;
    /// Ours: the instruction was of a wrong path, and its address is not known.
    pub const NO_PC: u64 = 1 << 57;
}

/// Latencies in cycles, and fields of `pdislat`, the fourth word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Cycles from decode to the end.
    pub total: u64,
    /// Cycles from decode to dispatch.
    pub dispatch: Option<u64>,
    /// Cycles from dispatch to issue, with address translation.
    pub issue: Option<u64>,
    /// Cycles from issue, with the address translated, to the result; of a store, from commit to the write of its line.
    pub execution: Option<u64>,
    /// Cycles from becoming the oldest in the ROB to the end.
    pub oldest: Option<u64>,
}

impl Latencies {
    /// Returns the fourth word of a record: each latency saturates.
    fn pack(&self) -> u64 {
        let fields = [self.dispatch, self.issue, self.execution, self.oldest];
        let field = |latency: u64, at: usize| latency.min(0xfff) << (12 * at);
        (1..)
            .zip(fields)
            .filter_map(|(at, latency)| Some(field(latency?, at) | 1 << (59 + at)))
            .fold(field(self.total, 0), |word, bits| word | bits)
    }

    /// Returns the latencies by number of `spdisfilter.LATSEL`, as far as a record holds them.
    pub fn by_number(&self) -> [u64; LATENCIES] {
        [Some(self.total), self.dispatch, self.issue, self.execution, self.oldest]
            .map(|latency| latency.unwrap_or(0).min(0xfff))
    }
}

/// A sample record. Its time is a cycle of the core until somebody reads the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// `pdishdrev`.
    pub header: u64,
    /// `pdispc`.
    pub pc: u64,
    /// Cycle in which the instruction left, for `pdistime`.
    pub cycle: u64,
    /// `pdislat`.
    pub latencies: u64,
    /// `pdisadr1`.
    pub address1: u64,
    /// `pdisadr2`.
    pub address2: u64,
}

snapshot::snapshot!(Record { header, pc, cycle, latencies, address1, address2 });

impl Record {
    /// Returns the words of the record; `time` is the third.
    pub fn words(&self, time: u64) -> [u64; 8] {
        let Self { header, pc, latencies, address1, address2, .. } = *self;
        [header, pc, time, latencies, address1, address2, 0, 0]
    }

    /// Returns the record of an instruction, and its latencies. `physical`: with the physical address of its access.
    pub fn of(observed: &Observed<'_>, physical: bool) -> (Self, Latencies) {
        let Observed { passed, detail, .. } = *observed;
        let access = passed.kind.access();
        let transfer = passed.kind.kind();
        let mut record = Self {
            header: header::ICITV | access as u64 | packet_events(detail),
            pc: passed.pc,
            cycle: passed.cycle,
            ..Self::default()
        };
        if !passed.outcome.retires() {
            record.header |= header::TRAPPED;
        }
        if access != AccessKind::None && detail.access.kind != AccessKind::None {
            // An access that faulted has no physical address.
            record.access(detail, physical && passed.outcome.retires());
        }
        if let Some(kind) = transfer {
            record.header |= header::TYPE_TRANSFER | 1 << (header::TRANSFER_SHIFT + kind as u32);
            if passed.outcome == Outcome::Mispredicted {
                record.header |= header::MISPRED;
            }
        }
        let latencies = latencies(observed);
        record.latencies = latencies.pack();
        (record, latencies)
    }

    /// Returns the record of an instruction of a wrong path, which the one that passed had thrown away.
    pub fn flushed(observed: &Observed<'_>) -> (Self, Latencies) {
        let Observed { passed, detail, .. } = *observed;
        let flush = match passed.outcome {
            Outcome::Retired | Outcome::Mispredicted => 1,
            Outcome::Replayed => 2,
            Outcome::Exception | Outcome::Interrupt => 3,
        };
        let ends = detail.complete.max(detail.decode);
        let latencies = Latencies { total: ends - detail.decode, ..Latencies::default() };
        let about = header::FLUSHED | header::PARTIAL | header::NO_PC | header::ADR1V;
        let record = Self {
            header: about | flush << header::FLUSH_SHIFT,
            cycle: ends,
            latencies: latencies.pack(),
            address1: passed.pc,
            ..Self::default()
        };
        (record, latencies)
    }

    /// Returns the record of a packet of a wrong path: which instruction aborted it is known, and no more.
    pub fn aborted(observed: &Observed<'_>) -> (Self, Latencies) {
        let (mut record, latencies) = Self::flushed(observed);
        record.header |= header::TYPE_FETCH;
        (record, latencies)
    }

    /// Returns the record of the packet that an instruction starts.
    pub fn of_packet(observed: &Observed<'_>, physical: bool) -> (Self, Latencies) {
        let Observed { passed, detail, .. } = *observed;
        let packet = &detail.packet;
        let latencies = Latencies {
            total: packet.delivered - packet.asked,
            dispatch: Some(match packet.translation {
                Translation::L1 => 0,
                _ => packet.translating.into(),
            }),
            ..Latencies::default()
        };
        let walked = match packet.translation {
            Translation::Walk => header::LLTLBMISS,
            _ => 0,
        };
        let missed = match packet.source {
            DataSource::Memory => header::LLMISS,
            _ => 0,
        };
        let source = (packet.source as u64) << header::DSRC_SHIFT;
        let events = header::ICITV | packet_events(detail);
        let mut record = Self {
            header: header::TYPE_FETCH | events | walked | missed | source,
            pc: passed.pc,
            cycle: packet.delivered,
            latencies: latencies.pack(),
            ..Self::default()
        };
        if physical {
            record.header |= header::ADR2V;
            record.address2 = packet.pa >> 2;
        }
        (record, latencies)
    }

    /// Adds the data access to the record.
    fn access(&mut self, detail: &Detail, physical: bool) {
        let access = &detail.access;
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let beyond_l1 = !matches!(
            access.source,
            DataSource::Unknown | DataSource::L1 | DataSource::StoreQueue | DataSource::Device
        );
        self.header |= (access.source as u64) << header::DSRC_SHIFT
            | flag(access.translation != Translation::L1, header::L1TLBMISS)
            | flag(access.translation == Translation::Walk, header::LLTLBMISS)
            | flag(beyond_l1, header::L1MISS)
            | flag(access.source == DataSource::Memory, header::LLMISS)
            | header::ADR1V;
        self.address1 = access.va;
        if physical {
            self.header |= header::ADR2V;
            self.address2 = access.pa >> 2;
        }
    }

    /// Adds the target of a control transfer to its record; `prior`: the target of the transfer before, if that is wanted.
    pub fn transferred(&mut self, target: u64, following: u64, prior: Option<u64>) {
        let taken = Kind::Taken as u32;
        let bit = |kind: u32| 1u64 << (header::TRANSFER_SHIFT + kind);
        if self.header & bit(taken) != 0 && target == following {
            self.header ^= bit(taken) | bit(Kind::NotTaken as u32);
        }
        self.header |= header::ADR1V;
        self.address1 = target;
        if let Some(prior) = prior {
            self.header |= header::ADR2V;
            self.address2 = prior;
        }
    }
}

/// Returns the misses of the packet that an instruction starts.
fn packet_events(detail: &Detail) -> u64 {
    let packet = &detail.packet;
    let mut events = 0;
    if packet.delivered != 0 {
        if packet.translation != Translation::L1 {
            events |= header::ITMISS;
        }
        if packet.source != DataSource::L1 {
            events |= header::ICMISS;
        }
    }
    events
}

fn latencies(observed: &Observed<'_>) -> Latencies {
    let Observed { passed, detail, .. } = *observed;
    let ends = passed.cycle;
    let translating = match detail.access.translation {
        Translation::L1 => 0,
        _ => u64::from(detail.access.translating),
    };
    let issued = detail.issue != 0;
    let executes = (detail.issue + translating).min(detail.complete);
    let oldest_from = (ends - passed.cycles).max(detail.dispatch);
    Latencies {
        total: ends.saturating_sub(detail.decode),
        dispatch: Some(detail.dispatch.saturating_sub(detail.decode)),
        issue: issued.then(|| executes.saturating_sub(detail.dispatch)),
        execution: issued.then(|| match detail.access.written {
            0 => detail.complete.saturating_sub(executes),
            written => written.saturating_sub(ends),
        }),
        oldest: Some(ends.saturating_sub(oldest_from)),
    }
}
