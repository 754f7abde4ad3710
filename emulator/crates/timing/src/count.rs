//! Running totals of events.

use commit_trace::{CommitSink, CycleClass};
use isa::{Exception, InstClass, PerfEvent};

use crate::follow::class_of;
use crate::mem::{Lookups, Origin};
use crate::micro_op::{jump, port};
use crate::pipeline::Pipeline;
use crate::predict::Component;
use crate::schedule::Lane;
use crate::units::Issued;

impl<S: CommitSink> Pipeline<S> {
    /// Returns the running total of what a counter is set to.
    pub(crate) fn selected(&self, counter: usize) -> u64 {
        self.selections.count(counter, |event| self.count(event))
    }

    /// Returns the running total of an event.
    pub(crate) fn count(&self, event: PerfEvent) -> u64 {
        use {CycleClass as C, Exception as X, InstClass as I, PerfEvent as E};
        let (stats, stalls) = (&self.stats, &self.stats.dispatch_stalls);
        let (front, lsu) = (&self.front.counts, &self.lsu.counts);
        let (l1d, walk, lower) = (&self.lsu.l1d, &self.lsu.walk, &self.lsu.lower.counts);
        let [data, code] = &walk.counts;
        let Issued { ports, queues } = &self.units.issued;
        let queue = |queue: Lane| queues[queue as usize];
        let missed = |component: Component| front.misses_by[component as usize];
        let l2 = |origin: Origin| lower.l2[origin as usize];
        let trap = |code: Exception| stats.exceptions_by_code[code as usize % 16];
        let late_loads = |class: CycleClass| lsu.late_loads[class as usize];
        let stalled = |class: CycleClass| stats.stalled[class as usize];
        let branches = || stats.branches();
        let jumps = || stats.all_jumps();
        let control = || branches().all + jumps().all;
        let (last_level, last_level_loads) = match self.preset().llc.kib {
            0 => {
                (Lookups { all: lower.l2_accesses(), misses: lower.l2_misses() }, l2(Origin::Load))
            }
            _ => (Lookups { all: lower.llc_accesses, misses: lower.llc_misses }, lower.llc_loads),
        };
        let class = |class: I| stats.classes[class as usize];
        let faults = |codes: [Exception; 3]| codes.map(trap).iter().sum::<u64>();
        let decoded_loads = || {
            let faults = faults([X::LoadMisaligned, X::LoadAccessFault, X::LoadPageFault]);
            lsu.loads.iter().sum::<u64>() + class(I::LoadReserved) + class(I::Amo) + faults
        };
        let decoded_stores = || {
            let faults = faults([X::StoreMisaligned, X::StoreAccessFault, X::StorePageFault]);
            lsu.stores + class(I::StoreConditional) + class(I::Amo) + faults
        };
        match event {
            E::Cycles | E::ReferenceCycles => self.now(),
            E::Instructions => stats.instructions,
            E::L1dReads => lsu.all_loads(),
            E::L1dReadMisses => l1d.counts.load_misses - l1d.counts.walk_misses,
            E::Branches => control(),
            E::BranchMisses => branches().mispredicted + jumps().mispredicted,
            E::L1iReads => front.l1i_accesses,
            E::L1iMisses => front.l1i_misses,
            E::LastLevelReads => last_level.all,
            E::LastLevelMisses => last_level.misses,
            E::DtlbReads => lsu.all_loads() + lsu.stores,
            E::DtlbMisses => lsu.dtlb_misses,
            E::ItlbReads | E::FetchPackets => front.packets,
            E::ItlbMisses => front.itlb_misses,
            E::TakenBranches => branches().taken + jumps().all,
            E::Exceptions => stats.exceptions,
            E::CondTaken => branches().taken,
            E::CondMisses => branches().mispredicted,
            E::RedirectsF2 => front.redirects_f2,
            E::RedirectsF3 => front.redirects_f3,
            E::L1dWrites => lsu.stores,
            E::L1dWriteMisses => l1d.counts.misses - l1d.counts.load_misses,
            E::L1dPrefetches => l1d.counts.prefetches,
            E::Writebacks => lower.writebacks,
            E::L2Reads => lower.l2_accesses(),
            E::L2Misses => lower.l2_misses(),
            E::LlcReads => lower.llc_accesses,
            E::LlcMisses => lower.llc_misses,
            E::Upgrades => lower.upgrades,
            E::Transfers => lower.transfers,
            E::Forwards => lsu.forwards,
            E::BankConflicts => lsu.bank_conflicts,
            E::OrderFailures => stats.order_failures,
            E::DeviceAccesses => lsu.mmio,
            E::L2TlbHits => data.l2_hits + code.l2_hits,
            E::PageWalks => data.walks + code.walks,
            E::CyclesCommitting => self.stats().cycles_committing(),
            E::CyclesStalled => stats.stalled.iter().sum(),
            E::CyclesFlushed => stats.cycles_flushed,
            E::CyclesDrained => stats.cycles_drained,
            E::CyclesIdle => stats.cycles_idle,
            E::StallsRob => stalls.rob,
            E::StallsRegisters => stalls.registers,
            E::StallsLoadQueue => stalls.load_queue,
            E::StallsStoreQueue => stalls.store_queue,
            E::StallsIssueQueue => stalls.issue_queue,
            E::StallsSerialize => stalls.serialize,
            E::StallsMemQueue => stalls.of_lane(Lane::Mem),
            E::StallsIntQueue => stalls.of_lane(Lane::Int),
            E::StallsFpQueue => stalls.of_lane(Lane::Fp),
            E::StallsTags => stalls.of_lane(Lane::Tag),
            E::StallsFpRegisters => stalls.fp_registers,
            E::Flushes => stats.flushes,
            E::Interrupts => stats.interrupts,
            E::EcallUser => trap(X::EcallU),
            E::EcallSupervisor => trap(X::EcallS),
            E::FetchPageFaults => trap(X::InstPageFault),
            E::LoadPageFaults => trap(X::LoadPageFault),
            E::StorePageFaults => trap(X::StorePageFault),
            E::IllegalInstructions => trap(X::IllegalInst),
            E::Breakpoints => trap(X::Breakpoint),
            E::OtherExceptions => [
                X::InstMisaligned,
                X::InstAccessFault,
                X::LoadMisaligned,
                X::LoadAccessFault,
                X::StoreMisaligned,
                X::StoreAccessFault,
                X::EcallM,
            ]
            .map(trap)
            .iter()
            .sum(),
            E::DecodedInstructions => {
                let left = stats.exceptions + stats.interrupts + stats.order_failures;
                stats.instructions + left + stats.wrong_path
            }
            E::DecodedBranches => control() + class(I::Xret),
            E::DecodedLoads => decoded_loads(),
            E::DecodedStores => decoded_stores(),
            E::DecodedLoadsStores => decoded_loads() + decoded_stores() - class(I::Amo),
            E::SamplesRecorded => self.sink.sampled().recorded,
            E::SampleCollisions => self.sink.sampled().collided,
            E::SamplesFiltered => self.sink.sampled().filtered,
            E::SamplesDropped => self.sink.sampled().dropped,
            E::StoreQueueOccupancy => stats.store_queue_occupancy,
            E::L1dMshrOccupancy => l1d.mshr_busy(),
            E::L2MshrOccupancy => self.lsu.lower.l2_mshr_busy(),
            E::MshrFull => l1d.counts.mshr_full,
            E::StoreMshrFull => l1d.counts.store_mshr_full,
            E::L2MshrFull => lower.l2_mshr_full,
            E::LlcMshrFull => lower.llc_mshr_full,
            E::LlcMshrOccupancy => lower.llc_mshr_busy,
            E::StoreDataFull => l1d.counts.store_data_full,
            E::DividerBusy => stats.divider_busy,
            E::FpDividerBusy => stats.fp_divider_busy,
            E::PendingHits => l1d.counts.pending_hits,
            E::PrefetchHits => l1d.counts.prefetch_hits,
            E::WalkReads => walk.reads,
            E::WalkReadMisses => l1d.counts.walk_misses,
            E::PteCacheHits => walk.pte_hits,
            E::PartialForwards => lsu.partial_forwards,
            E::ForwardWaits => lsu.forward_waits,
            E::RefusedLoads => lsu.refused,
            E::BankRetries => lsu.bank_retries,
            E::LoadReplays => lsu.replays(),
            E::StoreReplays => l1d.counts.store_replays,
            E::DelayedStores => lsu.delayed_stores,
            E::FailedStoreConditionals => stats.failed_store_conditionals,
            E::L2Fetches => l2(Origin::Fetch).all,
            E::L2FetchMisses => l2(Origin::Fetch).misses,
            E::L2Prefetches => l2(Origin::Prefetch).all,
            E::L2PrefetchMisses => l2(Origin::Prefetch).misses,
            E::L2Writes => l2(Origin::Store).all,
            E::L2WriteMisses => l2(Origin::Store).misses,
            E::L2Walks => l2(Origin::Walk).all,
            E::L2WalkMisses => l2(Origin::Walk).misses,
            E::L2PendingHits => lower.l2_pending,
            E::L2Writebacks => lower.l2_writebacks,
            E::L2Evictions => lower.l2_evictions,
            E::DtlbL2Hits => data.l2_hits,
            E::DtlbWalks => data.walks,
            E::DtlbWalkCycles => data.cycles,
            E::ItlbL2Hits => code.l2_hits,
            E::ItlbWalks => code.walks,
            E::ItlbWalkCycles => code.cycles,
            E::TlbFlushes => stats.tlb_flushes,
            E::DtlbLoads => lsu.all_loads(),
            E::DtlbLoadMisses => lsu.dtlb_misses - lsu.dtlb_store_misses,
            E::DtlbStores => lsu.stores,
            E::DtlbStoreMisses => lsu.dtlb_store_misses,
            E::LastLevelLoads => last_level_loads.all,
            E::LastLevelLoadMisses => last_level_loads.misses,
            E::FetchIcacheCycles => front.l1i_cycles,
            E::FetchBufferCycles => front.buffer_cycles,
            E::FetchTargetCycles => front.target_cycles,
            E::L1iPrefetches => front.l1i_prefetches,
            E::Redirects => front.redirects,
            E::Decoded => {
                stats.instructions + stats.exceptions + stats.interrupts + stats.order_failures
            }
            E::MissesBimodal => missed(Component::Bimodal),
            E::MissesTage => missed(Component::Tage),
            E::MissesLoop => missed(Component::Loops),
            E::MissesReturns => missed(Component::Returns),
            E::MissesBtb => missed(Component::Btb),
            E::MissesMicroBtb => missed(Component::MicroBtb),
            E::MissesUnknown => missed(Component::Unknown),
            E::BtbHits => front.btb_hits,
            E::BtbMisses => control() - front.btb_hits,
            E::MicroBtbHits => control() - front.micro_btb_misses,
            E::MicroBtbMisses => front.micro_btb_misses,
            E::F2Address => front.redirects_f2 - front.history_redirects_f2,
            E::F2History => front.history_redirects_f2,
            E::F3Address => front.redirects_f3 - front.history_redirects_f3,
            E::F3History => front.history_redirects_f3,
            E::ReturnsFull => front.returns_full,
            E::ReturnsEmpty => front.returns_empty,
            E::IssuedInt0 => ports[port::INT as usize],
            E::IssuedInt1 => ports[port::INT as usize + 1],
            E::IssuedInt2 => ports[port::INT as usize + 2],
            E::IssuedInt3 => ports[port::INT as usize + 3],
            E::IssuedInt4 => ports[port::INT as usize + 4],
            E::IssuedMem0 => ports[port::MEM as usize],
            E::IssuedMem1 => ports[port::MEM as usize + 1],
            E::IssuedFp0 => ports[port::FP as usize],
            E::IssuedFp1 => ports[port::FP as usize + 1],
            E::MemQueueOccupancy => queue(Lane::Mem),
            E::IntQueueOccupancy => queue(Lane::Int),
            E::FpQueueOccupancy => queue(Lane::Fp),
            E::IntAlu
            | E::IntMul
            | E::IntDiv
            | E::BranchInst
            | E::Jal
            | E::Jalr
            | E::Load
            | E::Store
            | E::FpLoad
            | E::FpStore
            | E::Amo
            | E::LoadReserved
            | E::StoreConditional
            | E::FpArith
            | E::FpDivSqrt
            | E::FpToInt
            | E::IntToFp
            | E::Csr
            | E::Fence
            | E::FenceI
            | E::SfenceVma
            | E::Xret
            | E::Wfi => class_of(event).map_or(0, |class| stats.of_class(class, lsu)),
            E::DirectJumps => stats.jumps(jump::DIRECT).all,
            E::DirectCalls => stats.jumps(jump::DIRECT_CALL).all,
            E::IndirectJumps => stats.jumps(jump::INDIRECT).all,
            E::IndirectCalls => stats.jumps(jump::INDIRECT_CALL).all,
            E::Returns => stats.jumps(jump::RETURN).all,
            E::IndirectMisses => stats.jumps(jump::INDIRECT).mispredicted,
            E::IndirectCallMisses => stats.jumps(jump::INDIRECT_CALL).mispredicted,
            E::ReturnMisses => stats.jumps(jump::RETURN).mispredicted,
            E::StalledAlu => stalled(C::Alu),
            E::StalledL1 => stalled(C::LoadL1),
            E::StalledL2 => stalled(C::LoadL2),
            E::StalledLlc => stalled(C::LoadLlc) + stalled(C::LoadPeer),
            E::StalledDram => stalled(C::LoadDram),
            E::StalledStore => stalled(C::Store),
            E::StalledDivider => stalled(C::Divider),
            E::StalledSerialize => stalled(C::Serialize),
            E::StalledDevice => stalled(C::Device),
            E::RetiredLoadL1 => lsu.early_loads(),
            E::RetiredLoadL2 => late_loads(C::LoadL2),
            E::RetiredLoadLlc => late_loads(C::LoadLlc) + late_loads(C::LoadPeer),
            E::RetiredLoadDram => late_loads(C::LoadDram),
            E::RetiredLoadDevice => late_loads(C::Device),
            E::Slots
            | E::SlotsRetiring
            | E::SlotsFrontend
            | E::SlotsBackend
            | E::SlotsBadSpeculation
            | E::SlotsFetchLatency
            | E::SlotsFetchBandwidth
            | E::SlotsIcache
            | E::SlotsItlb
            | E::SlotsResteer
            | E::SlotsMispredict
            | E::SlotsMachineClear
            | E::SlotsFlush
            | E::SlotsOrder
            | E::SlotsTrap
            | E::SlotsMemory
            | E::SlotsCore
            | E::SlotsMemoryL1
            | E::SlotsMemoryL2
            | E::SlotsMemoryLlc
            | E::SlotsMemoryDram
            | E::SlotsMemoryStore
            | E::SlotsMemoryDevice
            | E::SlotsCoreDivider
            | E::SlotsCoreSerialize
            | E::SlotsCoreExecution
            | E::SlotsCoreCommit
            | E::RetiredIcacheMiss
            | E::RetiredItlbMiss
            | E::RetiredStoreQueueFull
            | E::RetiredL1dMiss
            | E::RetiredDtlbMiss
            | E::RetiredLlcMiss
            | E::RobOccupancy
            | E::LoadQueueOccupancy => {
                let restart = self.window.restart();
                self.selections.followed(event, restart).unwrap_or(0)
            }
        }
    }
}
