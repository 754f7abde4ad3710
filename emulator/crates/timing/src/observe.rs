//! What sampling units want to know of each instruction that leaves the ROB: the one port by which they ask.

use commit_trace::{
    AccessKind, CommitSink, CycleClass, DataAccess, DataSource, Detail, PacketFetch, Redirect,
    Translation,
};
use isa::{InstClass, MemAccess, PerfEvent, Selection, Watch};

use crate::excerpt::Excerpts;
use crate::follow::{happens, is_of_record};
use crate::front::FrontEnd;
use crate::lsu::Access;
use crate::micro_op::MicroOp;
use crate::pipeline::Pipeline;
use crate::records::Retired;
use crate::stats::Stalls;

/// The first programmable counter has this number.
const FIRST_COUNTER: usize = 3;

/// A counter that is watched for overflows.
#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    counter: usize,
    selection: Selection,
    to_go: u64,
    period: u64,
    /// Total of the events that are not told from records, as of the last instruction.
    seen: u64,
}

snapshot::snapshot!(Watched { counter, selection, to_go, period, seen });

/// Who wants details.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObservedBy {
    /// The hart's sampling units want details.
    pub units: bool,
    /// The host wants details; this is no part of a machine's state.
    pub host: bool,
}

snapshot::snapshot!(ObservedBy { units } keeps { host });

impl ObservedBy {
    /// Returns true if somebody wants details.
    #[inline(always)]
    pub(crate) fn any(self) -> bool {
        self.units | self.host
    }
}

/// The details of what leaves the ROB, while somebody wants them.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    pub by: ObservedBy,
    watches: Vec<Watched>,
    /// The packet that was fetched last, if none of its instructions has left.
    packet: PacketFetch,
    /// Details on their way to the sink.
    pub details: Vec<Detail>,
    /// What dispatch had waited for at the last instruction.
    pub stalls: Stalls,
    /// The host's excerpts.
    pub excerpts: Excerpts,
}

// No details are on their way between runs, and excerpts are no part of a machine's state.
snapshot::snapshot!(Observer { by, watches, packet } keeps { details, stalls, excerpts });

impl Observer {
    /// Returns true if details are wanted.
    #[inline(always)]
    pub(crate) fn is_active(&self) -> bool {
        self.by.any() | self.excerpts.is_open()
    }

    /// Forgets the details that nobody took.
    pub(crate) fn forget(&mut self, front: &mut FrontEnd) {
        front.fetched_packet();
        self.packet = PacketFetch::default();
        self.details.clear();
    }
}

/// Outcome of a demand access that was no plain hit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Demand {
    pub source: DataSource,
    /// Cycle in which the line is there.
    pub ready: u64,
}

/// Translation of an address that missed in the first-level TLB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Translated {
    pub by: Translation,
    pub cycles: u32,
}

impl Translated {
    /// Returns a translation by a walk, or by the second level, from a cycle to another.
    pub(crate) fn new(walked: bool, from: u64, to: u64) -> Self {
        Self {
            by: match walked {
                true => Translation::Walk,
                false => Translation::L2,
            },
            cycles: u32::try_from(to - from).unwrap_or(u32::MAX),
        }
    }
}

/// Returns how an instruction accesses memory, if it does.
pub(crate) fn access_kind(micro_op: &MicroOp) -> AccessKind {
    match micro_op.class {
        InstClass::Load | InstClass::FpLoad | InstClass::LoadReserved => AccessKind::Load,
        InstClass::Amo => AccessKind::Atomic,
        _ => AccessKind::Store,
    }
}

impl<S> Pipeline<S> {
    /// Notes how the packet was fetched that was fetched last, while details are wanted.
    pub(crate) fn packet_fetched(&mut self) {
        if self.observer.is_active() {
            self.observer.packet = self.front.fetched_packet();
        }
    }
}

impl<S: CommitSink> Pipeline<S> {
    /// Sets who wants the details from now on.
    pub(crate) fn observe(&mut self, by: ObservedBy) {
        let was_active = self.observer.is_active();
        self.observer.by = by;
        if was_active != self.observer.is_active() {
            self.observer.forget(&mut self.front);
        }
    }

    /// Watches a counter from now on; `None`: no longer.
    pub(crate) fn watch(&mut self, counter: usize, watch: Option<Watch>) {
        let watches = &mut self.observer.watches;
        watches.retain(|watched| watched.counter != counter);
        if let Some(watch) = watch {
            let seen = self.counted(watch.selection);
            self.observer.watches.push(Watched {
                counter,
                selection: watch.selection,
                to_go: watch.to_go,
                period: watch.period,
                seen,
            });
        }
    }

    /// Returns the total of those events of a selection that are not told from records.
    fn counted(&self, selection: Selection) -> u64 {
        selection
            .events()
            .filter(|&event| !is_of_record(event))
            .map(|event| self.count(event))
            .fold(0, u64::wrapping_add)
    }

    /// Begins an access that somebody observes: what it meets is noted from here.
    #[inline(always)]
    pub(crate) fn begin_access(&mut self, access: MemAccess) {
        self.lsu.observed = access;
        self.lsu.translated = Translated::default();
        self.lsu.l1d.demand = Demand::default();
    }

    /// Notes the details of the instruction that left the ROB last, whose record is the last one; `flushed`: about how
    /// many instructions behind it were thrown away.
    #[cold]
    #[inline(never)]
    pub(crate) fn observed(
        &mut self,
        micro_op: &MicroOp,
        retired: &Retired,
        access: DataAccess,
        flushed: u64,
    ) {
        if !self.observer.is_active() {
            return;
        }
        let [incurred, overflows, overflows_before] = self.watched_by(micro_op);
        let packet = std::mem::take(&mut self.observer.packet);
        let stalls = self.stats.dispatch_stalls;
        let dispatch_wait = stalls.since(&self.observer.stalls);
        self.observer.stalls = stalls;
        self.observer.details.push(Detail {
            decode: self.front.buffer.cycle(),
            slot: self.front.buffer.last_slot() as u8,
            dispatch: retired.dispatch,
            issue: retired.issue,
            wake: self.registers[usize::from(micro_op.dst)],
            complete: retired.done,
            dispatch_wait,
            access,
            packet,
            flushed: u32::try_from(flushed).unwrap_or(u32::MAX),
            incurred,
            overflows,
            overflows_before,
        });
    }

    /// Returns the watched counters whose event the instruction that left last incurs, those that overflow by it, and
    /// those that overflow by the last instruction before it that restarted fetch.
    fn watched_by(&mut self, micro_op: &MicroOp) -> [u32; 3] {
        if self.observer.watches.is_empty() {
            return [0; 3];
        }
        let (mut incurred, mut overflows, mut overflows_before) = (0, 0, 0);
        let mut watches = std::mem::take(&mut self.observer.watches);
        for watched in &mut watches {
            let record = self.records.so_far().last();
            let of_record = |event: &PerfEvent| is_of_record(*event);
            let happens = |event: &PerfEvent| record.is_some_and(|r| happens(*event, r, micro_op));
            let events = watched.selection.events().filter(of_record);
            let total = self.counted(watched.selection);
            let occurred = events.filter(happens).count() as u64 + total.wrapping_sub(watched.seen);
            watched.seen = total;
            let overflow = occurred >= watched.to_go;
            watched.to_go = match overflow {
                true => watched.period - (occurred - watched.to_go) % watched.period,
                false => watched.to_go - occurred,
            };
            let bit = 1 << (watched.counter + FIRST_COUNTER);
            if watched.selection.is_flushed_cycles() {
                // Flushed cycles are told as the next instruction leaves, and are due to the instruction that flushed.
                overflows_before |= if overflow { bit } else { 0 };
                continue;
            }
            incurred |= if occurred != 0 { bit } else { 0 };
            overflows |= if overflow { bit } else { 0 };
        }
        self.observer.watches = watches;
        [incurred, overflows, overflows_before]
    }

    /// Returns how a load or store fared; `forwards`: how many loads stores had answered before it.
    pub(crate) fn data_access(
        &self,
        micro_op: &MicroOp,
        access: &Access<'_>,
        class: CycleClass,
        forwards: u64,
    ) -> DataAccess {
        let demand = self.lsu.l1d.demand;
        let source = match class {
            _ if access.mmio => DataSource::Device,
            CycleClass::LoadL1 if self.lsu.counts.forwards != forwards => DataSource::StoreQueue,
            _ if demand.source == DataSource::Unknown => DataSource::L1,
            _ => demand.source,
        };
        DataAccess {
            kind: access_kind(micro_op),
            size: self.lsu.observed.size(),
            va: self.lsu.observed.va,
            pa: access.pa,
            source,
            translation: self.lsu.translated.by,
            translating: self.lsu.translated.cycles,
            written: 0,
        }
    }

    /// Returns the instructions that decode took after the one decoded last, of a path that turned out wrong, until
    /// fetch restarted in cycle `restart`. Not modelled: how many the wrong path has; taken are as many as decode and
    /// ROB can hold.
    #[inline(always)]
    pub(crate) fn wrong_path(&self, redirect: Redirect, restart: u64) -> u64 {
        if redirect == Redirect::None {
            return 0;
        }
        let preset = self.preset();
        let cycles = restart.saturating_sub(self.front.buffer.cycle());
        (cycles * u64::from(preset.decode.width)).min(preset.rob.entries.into())
    }
}
