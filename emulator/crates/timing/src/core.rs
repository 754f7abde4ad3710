//! The core: its parts, and the order in which an instruction passes them.

use commit_trace::{CommitRecord, CommitSink, CycleClass, Event, InstId, Redirect};
use isa::{
    DecodedInst, Executed, MemAccess, Operand, PageWalker, PerfEvent, Privilege, Run, StaticId,
    StaticInst, TimingModel,
};

use snapshot::{Archive, Snapshot};

use crate::Preset;
use crate::commit::{FIRST_OF_ROW, Records};
use crate::execute::Units;
use crate::facts::{self, Fact, Kind, NO_REG, PortMap};
use crate::front::{Below, Fetched, FrontEnd};
use crate::lsu::Lsu;
use crate::mem::SharedMemory;
use crate::stats::Stats;
use crate::window::Window;

/// Registers that the scoreboard knows, and one for results that go nowhere; as many as a number can name.
const REGISTERS: usize = 256;

/// The timing model of one hart.
pub struct Core<S> {
    pub(crate) sink: S,
    preset: Preset,
    port_map: PortMap,
    facts: Vec<Fact>,
    pub(crate) front: FrontEnd,
    /// Of the instruction decoded last, as flags of its record: that it starts a ROB row, and why it came late.
    pub(crate) mark: u32,
    pub(crate) records: Records,
    pub(crate) window: Window,
    /// By register: the first cycle in which an instruction that reads it can issue.
    pub(crate) registers: [u64; REGISTERS],
    pub(crate) units: Units,
    pub(crate) lsu: Lsu,
    pub(crate) stats: Stats,
    /// What all executed instructions have in common.
    executed: Executed,
    /// Cycle before the first.
    started: u64,
}

impl<S> Core<S> {
    /// A core after reset whose first cycle is the one after `cycle`.
    pub fn starting_at(cycle: u64, preset: &Preset, sink: S) -> Self {
        Self::new(preset, sink).started_at(cycle)
    }

    /// The same core, after reset, whose first cycle is the one after `cycle`.
    pub fn started_at(mut self, cycle: u64) -> Self {
        self.started = cycle;
        self.window.committed = cycle;
        self.records.sent = cycle;
        self.front.flush(cycle + 1);
        self
    }

    /// A core after reset.
    pub fn new(preset: &Preset, sink: S) -> Self {
        Self::sharing(&SharedMemory::new(preset, 1), 0, preset, sink)
    }

    /// The core of hart number `hart` after reset, one of those that share `memory`.
    pub fn sharing(memory: &SharedMemory, hart: usize, preset: &Preset, sink: S) -> Self {
        let port_map = PortMap::new(preset);
        Self {
            sink,
            preset: preset.clone(),
            facts: Vec::new(),
            front: FrontEnd::new(preset),
            mark: 0,
            records: Records::new(),
            window: Window::new(preset),
            registers: [0; REGISTERS],
            units: Units::new(preset, &port_map),
            lsu: Lsu::new(preset, memory, hart),
            stats: Stats::default(),
            executed: Executed {
                id: StaticId(0),
                inst: isa::decode(0),
                pc: 0,
                fetch_pa: 0,
                next_pc: 0,
                mem: MemAccess::default(),
                operand: Operand::default(),
                privilege: Privilege::Machine,
                trap: None,
                translated: false,
            },
            port_map,
            started: 0,
        }
    }

    /// Where the records go.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// Where the records go.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Gives the sink back.
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// The parameters.
    pub fn preset(&self) -> &Preset {
        &self.preset
    }

    /// Cycle of the last commit or trap, or in which the hart woke up last.
    pub fn cycle(&self) -> u64 {
        self.window.committed
    }

    /// Everything counted since reset.
    pub fn stats(&self) -> Stats {
        let (front, lsu) = (&self.front, &self.lsu);
        let (dram_accesses, dram_row_hits) = lsu.lower.shared.dram_counts();
        Stats {
            cycles: self.window.committed - self.started,
            fetch_packets: front.counts.packets,
            redirects_f2: front.counts.redirects_f2,
            redirects_f3: front.counts.redirects_f3,
            loads: lsu.counts.loads,
            stores: lsu.counts.stores,
            forwards: lsu.counts.forwards,
            bank_conflicts: lsu.counts.bank_conflicts,
            mmio: lsu.counts.mmio,
            l1i_accesses: front.counts.l1i_accesses,
            l1i_misses: front.counts.l1i_misses,
            l1d_misses: lsu.l1d.misses,
            l1d_load_misses: lsu.l1d.load_misses,
            l1d_prefetches: lsu.l1d.prefetches,
            l2_accesses: lsu.lower.counts.l2_accesses,
            l2_misses: lsu.lower.counts.l2_misses,
            llc_accesses: lsu.lower.counts.llc_accesses,
            llc_misses: lsu.lower.counts.llc_misses,
            writebacks: lsu.lower.counts.writebacks,
            upgrades: lsu.lower.counts.upgrades,
            transfers: lsu.lower.counts.transfers,
            dram_accesses,
            dram_row_hits,
            itlb_misses: front.itlb.misses,
            dtlb_misses: lsu.dtlb.misses,
            l2tlb_hits: lsu.walk.l2_hits,
            page_walks: lsu.walk.walks,
            ..self.stats.clone()
        }
    }

    /// Leaves room for instructions that were announced to another core.
    pub fn skip_ids(&mut self, count: usize) {
        self.facts.resize(count, Fact::UNKNOWN);
    }

    /// The facts of an instruction. One that was not announced is the caller's bug, not the guest's.
    #[inline(always)]
    pub(crate) fn fact(&self, id: StaticId) -> Fact {
        self.facts[id.0 as usize]
    }

    /// Decodes the instruction at `pc`, whose page is at physical address `page`: in a new packet or group,
    /// if it starts one.
    #[inline(always)]
    pub(crate) fn fetch_one(
        &mut self,
        pc: u64,
        page: u64,
        len: u8,
        translated: bool,
        walker: &impl PageWalker,
    ) -> u64 {
        self.mark = 0;
        if !self.front.continues(pc, len) {
            let pa = page | pc & 0xfff;
            let len = u64::from(len);
            self.start(
                &Fetched {
                    pc,
                    pa,
                    len,
                    translated,
                },
                walker,
            );
        }
        self.front.decode()
    }

    /// The next instruction starts a packet, a row, or both.
    #[inline(never)]
    fn start(&mut self, inst: &Fetched, walker: &impl PageWalker) {
        if self.front.packet_is_over(inst) {
            self.packet(inst, walker);
        }
        if self.front.buffer.ended() {
            self.start_row();
        }
        self.front.grant();
    }

    #[inline(always)]
    fn packet(&mut self, inst: &Fetched, walker: &impl PageWalker) {
        let Lsu {
            walk, l1d, lower, ..
        } = &mut self.lsu;
        self.front.packet(
            inst,
            self.window.committed,
            Below { walk, l1d, lower },
            walker,
        );
        self.mark = CommitRecord::flags_of(
            Redirect::None,
            false,
            CycleClass::Alu,
            std::mem::take(&mut self.front.tea),
        );
    }

    /// A decode group, and its ROB row.
    #[inline(always)]
    fn start_row(&mut self) {
        let decoded = self.front.start_group(self.window.dispatched);
        self.window
            .new_row(decoded, &mut self.stats.dispatch_stalls);
        self.mark |= FIRST_OF_ROW;
    }

    /// An instruction that does not serialise, from dispatch to commit.
    #[inline(always)]
    fn pass(&mut self, fact: &Fact, executed: &Executed, walker: &impl PageWalker)
    where
        S: CommitSink,
    {
        match fact.kind {
            Kind::Load => self.load(fact, executed, walker),
            Kind::Store => self.store(fact, executed, walker),
            Kind::Branch => self.branch(fact, executed.id, executed.pc, executed.next_pc),
            Kind::Jump => self.jump(fact, executed.id, executed.pc, executed.next_pc),
            Kind::Divide | Kind::FpDivide => self.divide(fact, executed),
            Kind::Alu | Kind::Simple | Kind::Unique | Kind::Trap => {
                self.simple(fact, executed.id);
            }
        }
    }

    /// First cycle in which all sources are there, for an instruction dispatched in `dispatch`.
    #[inline(always)]
    pub(crate) fn sources(&self, fact: &Fact, dispatch: u64) -> u64 {
        let [a, b, c] = fact.src.map(|r| self.registers[usize::from(r)]);
        (dispatch + 1).max(a).max(b).max(c)
    }

    #[inline(always)]
    pub(crate) fn write_register(&mut self, fact: &Fact, wake: u64) {
        self.registers[usize::from(fact.dst)] = wake;
    }
}

/// Between runs. Facts of instructions are not state: they are announced again.
impl<S> Snapshot for Core<S> {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self {
            sink: _,
            preset: _,
            port_map: _,
            facts: _,
            executed: _,
            front,
            mark,
            records,
            window,
            registers,
            units,
            lsu,
            stats,
            started,
        } = self;
        front.snapshot(archive)?;
        mark.snapshot(archive)?;
        records.snapshot(archive)?;
        window.snapshot(archive)?;
        registers.snapshot(archive)?;
        units.snapshot(archive)?;
        lsu.snapshot(archive)?;
        stats.snapshot(archive)?;
        started.snapshot(archive)
    }
}

impl<S: CommitSink> TimingModel for Core<S> {
    const TIMED: bool = true;
    const RUNS: bool = true;

    fn define(&mut self, inst: &StaticInst) {
        let fact = Fact::new(inst, &self.preset, &self.port_map);
        let index = inst.id.0 as usize;
        if index >= self.facts.len() {
            self.facts.resize(index + 1, Fact::UNKNOWN);
        }
        self.facts[index] = fact;
        self.sink.define(&facts::for_stream(inst));
    }

    #[inline]
    fn fetch(
        &mut self,
        _id: StaticId,
        inst: &DecodedInst,
        pc: u64,
        pa: u64,
        translated: bool,
        walker: &impl PageWalker,
    ) -> u64 {
        self.fetch_one(pc, pa & !0xfff, inst.len, translated, walker)
    }

    #[inline]
    fn retire(&mut self, executed: &Executed, walker: &impl PageWalker) {
        let fact = &self.fact(executed.id);
        // An exception takes it back.
        self.stats.instructions += 1;
        match fact.kind {
            _ if executed.trap.is_some() => self.retire_alone(executed, walker),
            Kind::Unique | Kind::Trap => self.retire_alone(executed, walker),
            Kind::Alu => self.alu(fact, executed.id),
            _ => self.pass(fact, executed, walker),
        }
        self.send();
    }

    #[inline(never)]
    fn run(&mut self, run: &Run<'_>, walker: &impl PageWalker) -> u64 {
        // Aside, so that one can be referred to while the core changes.
        let facts = std::mem::take(&mut self.facts);
        let (mut accesses, mut operands) = (0, 0);
        let mut executed = Executed {
            translated: run.translated,
            ..self.executed
        };
        let mut steps = run.steps.iter();
        while let Some(step) = steps.next() {
            let (id, pc) = (step.id, run.pc(step));
            let fact = &facts[id.0 as usize];
            self.fetch_one(pc, run.page, fact.len, run.translated, walker);
            if fact.kind == Kind::Alu {
                self.alu(fact, id);
                continue;
            }
            if matches!(fact.kind, Kind::Branch | Kind::Jump) {
                let next = steps
                    .as_slice()
                    .first()
                    .map_or(run.next_pc, |step| run.pc(step));
                match fact.kind {
                    Kind::Branch => self.branch(fact, id, pc, next),
                    _ => self.jump(fact, id, pc, next),
                }
                continue;
            }
            executed.id = id;
            executed.pc = pc;
            executed.fetch_pa = run.page | pc & 0xfff;
            // Tests that the host predicts each by itself are quicker than one jump by kind.
            if fact.kind == Kind::Load {
                executed.mem = run.accesses[accesses];
                accesses += 1;
                self.load(fact, &executed, walker);
                continue;
            }
            if fact.kind == Kind::Store {
                executed.mem = run.accesses[accesses];
                accesses += 1;
                self.store(fact, &executed, walker);
                continue;
            }
            if fact.kind == Kind::Divide {
                executed.operand = run.operands[operands];
                operands += 1;
            }
            self.pass(fact, &executed, walker);
        }
        self.facts = facts;
        self.stats.instructions += run.steps.len() as u64;
        self.send();
        self.front.buffer.cycle()
    }

    fn interrupt(&mut self, id: StaticId, _pc: u64, _handler_pc: u64) {
        self.take_interrupt(id);
        self.send();
    }

    fn idle_until(&mut self, cycle: u64) {
        let from = self.window.committed;
        if cycle <= from {
            return;
        }
        self.stats.cycles_idle += cycle - from;
        self.window.committed = cycle;
        self.records.sent = cycle;
        self.front.flush(cycle + 1);
        self.sink.event(
            from,
            Event::Idle {
                cycles: cycle - from,
            },
        );
    }

    fn others_ran(&mut self) {
        self.lsu.heed_probes();
    }

    /// The cycle in which a CSR instruction that was fetched last accesses its register: dispatched into
    /// the empty ROB, write-back 4 cycles later.
    #[inline]
    fn now(&self) -> u64 {
        (self.front.buffer.cycle() + 1).max(self.window.empty()) + crate::serialize::CSR_ACCESS
    }

    fn count(&self, event: PerfEvent) -> u64 {
        let (stats, lsu) = (&self.stats, &self.lsu);
        match event {
            PerfEvent::Cycles => self.now(),
            PerfEvent::Instructions => stats.instructions,
            PerfEvent::CacheReferences => lsu.counts.loads + lsu.counts.stores,
            PerfEvent::CacheMisses => match self.preset.llc.kib {
                0 => lsu.lower.counts.l2_misses,
                _ => lsu.lower.counts.llc_misses,
            },
            PerfEvent::Branches => stats.branches + stats.jumps,
            PerfEvent::BranchMisses => stats.branch_misses + stats.jump_misses,
            PerfEvent::FrontendStalls => stats.cycles_drained,
            PerfEvent::BackendStalls => stats.cycles_stalled,
            PerfEvent::L1dMisses => lsu.l1d.load_misses,
            PerfEvent::L1iMisses => self.front.counts.l1i_misses,
            PerfEvent::DtlbMisses => lsu.dtlb.misses,
            PerfEvent::ItlbMisses => self.front.itlb.misses,
        }
    }

    fn flush_tlb(&mut self) {
        self.front.flush_tlb();
        self.lsu.flush_tlb();
    }

    fn region(&mut self, start: bool) {
        self.sink.event(self.window.committed, Event::Region(start));
    }

    fn privilege(&mut self, privilege: Privilege) {
        self.sink
            .event(self.window.committed, Event::Privilege(privilege as u8));
    }
}

/// The stream's number of a static instruction.
#[inline(always)]
pub(crate) fn stream_id(id: StaticId) -> InstId {
    InstId(id.0)
}

const _: () = assert!((NO_REG as usize) < REGISTERS);
