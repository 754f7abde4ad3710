//! The half of the core that keeps time: its parts, and the order in which an instruction passes them.

use commit_trace::{CommitRecord, CommitSink, CycleClass, Event, InstId, Redirect};
use isa::{DmaLines, Executed, Operand, Privilege, Selection, StaticId, StaticInst};

use crate::Preset;
use crate::dependences::Dependences;
use crate::follow::{Group, Selections, Start};
use crate::front::{Below, FrontEnd};
use crate::lsu::{Access, Lsu};
use crate::mem::SharedMemory;
use crate::micro_op::{self, Kind, MicroOp, NO_REG, PortMap};
use crate::observe::Observer;
use crate::path::{Extent, InstOutput, NextPacket, Packet, Reader, WalkReads};
use crate::records::{FIRST_OF_ROW, Records};
use crate::stats::Stats;
use crate::trainings::Trainings;
use crate::units::Units;
use crate::window::Window;
use crate::without::Removed;

/// Cycles from dispatch to the CSR file's access: issue, register read, execute, write back.
pub(crate) const CSR_ACCESS: u64 = 4;

/// Registers that the scoreboard knows, and one for results that go nowhere; as many as a number can name.
const REGISTERS: usize = 256;

/// Everything that knows cycles: the timing of fetch, and all that comes after it.
#[repr(align(128))]
pub(crate) struct Pipeline<S> {
    pub sink: S,
    preset: Preset,
    port_map: PortMap,
    removed: Removed,
    /// Register dependences that a what-if changes, if there is one that does.
    pub dependences: Option<Box<Dependences>>,
    pub micro_ops: Vec<MicroOp>,
    pub front: FrontEnd,
    /// Flags that the record of the instruction decoded last will have: whether it starts a ROB row, and why the front end
    /// delivered it late.
    pub mark: u32,
    pub records: Records,
    pub window: Window,
    /// By register: the first cycle in which an instruction that reads it can issue.
    pub registers: [u64; REGISTERS],
    pub units: Units,
    pub lsu: Lsu,
    pub stats: Stats,
    pub selections: Selections,
    pub observer: Observer,
    /// Cycle before the core's first one.
    started: u64,
    /// What a predictor that learns at commit is told.
    pub trainings: Trainings,
}

impl<S> Pipeline<S> {
    /// Returns the pipeline of hart `hart` after reset, connected to `memory`.
    pub(crate) fn new(memory: &SharedMemory, hart: usize, preset: &Preset, sink: S) -> Self {
        let port_map = PortMap::new(preset);
        let removed = Removed::of(preset);
        Self {
            sink,
            preset: preset.clone(),
            dependences: Dependences::new(preset, &removed),
            removed,
            micro_ops: Vec::new(),
            front: FrontEnd::new(preset),
            mark: 0,
            records: Records::new(),
            window: Window::new(preset),
            registers: [0; REGISTERS],
            units: Units::new(&port_map),
            lsu: Lsu::new(preset, memory, hart),
            stats: Stats::default(),
            selections: Selections::default(),
            observer: Observer::default(),
            port_map,
            started: 0,
            trainings: Trainings::new(preset),
        }
    }

    /// Has the first cycle be the one after `cycle`.
    pub(crate) fn start_at(&mut self, cycle: u64) {
        self.started = cycle;
        self.window.committed = cycle;
        self.records.sent = cycle;
        self.front.redirect(cycle + 1);
    }

    /// Takes what was announced to another pipeline of the same core: instructions.
    pub(crate) fn announced_as<T>(&mut self, other: &Pipeline<T>) {
        self.micro_ops.clone_from(&other.micro_ops);
        self.dependences.clone_from(&other.dependences);
    }

    /// Returns the core's parameters.
    pub(crate) fn preset(&self) -> &Preset {
        &self.preset
    }

    /// Returns the cycle of the last commit or trap, or in which the hart woke up last.
    pub(crate) fn cycle(&self) -> u64 {
        self.window.committed
    }

    /// Returns everything counted since reset.
    pub(crate) fn stats(&self) -> Stats {
        let (front, lsu) = (&self.front, &self.lsu);
        let (dram_accesses, dram_row_hits) = lsu.lower.shared.dram_counts();
        Stats {
            cycles: self.window.committed - self.started,
            fetch_packets: front.counts.packets,
            redirects_f2: front.counts.redirects_f2,
            redirects_f3: front.counts.redirects_f3,
            loads: lsu.counts.all_loads(),
            stores: lsu.counts.stores,
            forwards: lsu.counts.forwards,
            bank_conflicts: lsu.counts.bank_conflicts,
            mmio: lsu.counts.mmio,
            l1i_accesses: front.counts.l1i_accesses,
            l1i_misses: front.counts.l1i_misses,
            l1d_misses: lsu.l1d.counts.misses,
            l1d_load_misses: lsu.l1d.counts.load_misses,
            l1d_prefetches: lsu.l1d.counts.prefetches,
            l2_accesses: lsu.lower.counts.l2_accesses(),
            l2_misses: lsu.lower.counts.l2_misses(),
            llc_accesses: lsu.lower.counts.llc_accesses,
            llc_misses: lsu.lower.counts.llc_misses,
            writebacks: lsu.lower.counts.writebacks,
            upgrades: lsu.lower.counts.upgrades,
            transfers: lsu.lower.counts.transfers,
            dram_accesses,
            dram_row_hits,
            itlb_misses: front.counts.itlb_misses,
            dtlb_misses: lsu.counts.dtlb_misses,
            l2tlb_hits: lsu.walk.counts.iter().map(|of| of.l2_hits).sum(),
            page_walks: lsu.walk.counts.iter().map(|of| of.walks).sum(),
            ..self.stats.clone().summed()
        }
    }

    /// Follows all that commits from now on, for the host.
    pub(crate) fn follow(&mut self) {
        let start = self.following();
        self.selections.always(start);
    }

    /// Returns where following starts from.
    fn following(&self) -> Start {
        Start {
            width: self.preset.decode.width,
            entries: self.preset.rob.entries,
            committed: self.window.committed,
            decoded: self.front.buffer.cycle().max(self.window.committed),
        }
    }

    /// Leaves room for instructions that were announced to another core.
    pub(crate) fn skip_ids(&mut self, count: usize) {
        self.micro_ops.resize(count, MicroOp::UNKNOWN);
    }

    /// Returns the micro-op of an instruction. One that was not announced is the caller's bug, not the guest's.
    #[inline(always)]
    pub(crate) fn micro_op(&self, id: StaticId) -> MicroOp {
        self.micro_ops[id.0 as usize]
    }

    /// Decodes the next instruction; returns the cycle. `packet`: the packet that it starts, if it starts one.
    #[inline(always)]
    pub(crate) fn decode(&mut self, packet: Option<Packet>, walk: Option<&WalkReads>) -> u64 {
        self.mark = 0;
        if let Some(packet) = packet {
            self.packet(packet, walk);
        }
        if self.front.buffer.ended() {
            let dispatched = self.window.dispatched;
            self.start_row();
            let (decode, window) = (self.front.buffer.cycle(), &self.window);
            if let Some(slots) = &mut self.selections.slots
                && !slots.start_at_once(decode, dispatched, &self.records, window)
            {
                self.follow_row(dispatched);
            }
        }
        self.front.decode()
    }

    #[inline(never)]
    fn packet(&mut self, packet: Packet, reads: Option<&WalkReads>) {
        let Lsu { walk, l1d, lower, .. } = &mut self.lsu;
        self.front.packet(packet, reads, self.window.committed, Below { walk, l1d, lower });
        self.mark = CommitRecord::flags_of(
            Redirect::None,
            false,
            CycleClass::Alu,
            std::mem::take(&mut self.front.tea),
        );
        self.packet_fetched();
    }

    /// Returns true if each instruction is looked at: somebody asks for what issues, or for details, or dependences are
    /// changed.
    fn is_looked_at(&self) -> bool {
        self.selections.issues
            | self.observer.is_active()
            | self.dependences.is_some()
            | self.trainings.are_asked()
    }

    /// Starts a decode group, and its ROB row.
    #[inline(never)]
    fn start_row(&mut self) {
        let decoded = self.front.start_group(self.window.dispatched);
        self.window.new_row(decoded, &mut self.stats.dispatch_stalls);
        self.mark |= FIRST_OF_ROW;
    }

    /// Counts the slots up to the row that was started; the last instruction of the row before was dispatched in `dispatched`.
    #[inline(never)]
    fn follow_row(&mut self, dispatched: u64) {
        if let Some(slots) = &mut self.selections.slots {
            let group = Group { decode: self.front.buffer.cycle(), dispatched, mark: self.mark };
            slots.start_group(group, &self.records, &self.window);
        }
    }

    /// Returns the first cycle in which all sources are there, for an instruction dispatched in `dispatch`.
    #[inline(always)]
    pub(crate) fn sources(&self, micro_op: &MicroOp, dispatch: u64) -> u64 {
        let [a, b, c] = micro_op.src.map(|r| self.registers[usize::from(r)]);
        (dispatch + 1).max(a).max(b).max(c)
    }

    #[inline(always)]
    pub(crate) fn write_register(&mut self, micro_op: &MicroOp, wake: u64) {
        self.registers[usize::from(micro_op.dst)] = wake;
    }
}

// Saved between runs. Micro-ops are not state: instructions are announced again.
snapshot::snapshot!(Pipeline<S> {
    front,
    mark,
    records,
    window,
    registers,
    units,
    lsu,
    stats,
    selections,
    observer,
    started,
    trainings,
} keeps {
    sink,
    preset,
    port_map,
    removed,
    dependences,
    micro_ops,
});

impl<S: CommitSink> Pipeline<S> {
    pub(crate) fn define(&mut self, inst: &StaticInst) {
        let mut micro_op = MicroOp::new(inst, &self.preset, &self.port_map);
        let causes = self.removed.at(inst);
        if causes != 0 {
            micro_op = micro_op.without(causes, &self.preset, &self.port_map);
        }
        if let Some(dependences) = &mut self.dependences {
            dependences.define(inst, causes, self.removed.select_at(inst));
        }
        let index = inst.id.0 as usize;
        if index >= self.micro_ops.len() {
            self.micro_ops.resize(index + 1, MicroOp::UNKNOWN);
        }
        self.micro_ops[index] = micro_op;
        self.sink.define(&micro_op::for_stream(inst));
    }

    /// Fetches one instruction by itself, up to its decoding; returns the cycle of that.
    pub(crate) fn fetch(&mut self, packet: Option<Packet>, output: &mut Reader<'_>) -> u64 {
        let walk = packet.and_then(|packet| output.packet_walk(packet));
        self.trainings.starts = packet.is_some();
        self.decode(packet, walk)
    }

    /// Returns how many packets before the last one the predictor has not been trained with when a packet is fetched.
    pub(crate) fn untrained(&mut self, packet: NextPacket) -> u64 {
        self.trainings.left(self.front.fetches(packet))
    }

    /// Passes the instruction that was fetched last.
    pub(crate) fn retire(
        &mut self,
        executed: &Executed,
        passed: &InstOutput,
        output: &mut Reader<'_>,
    ) {
        match self.is_looked_at() {
            false => self.retire_as::<false>(executed, passed, output),
            true => self.retire_as::<true>(executed, passed, output),
        }
    }

    fn retire_as<const COUNTED: bool>(
        &mut self,
        executed: &Executed,
        passed: &InstOutput,
        output: &mut Reader<'_>,
    ) {
        let id = executed.id;
        let mut micro_op = &self.micro_op(id);
        let changed;
        if COUNTED && let Some(dependences) = &mut self.dependences {
            changed = dependences.next(id, micro_op, &mut self.registers);
            micro_op = &changed;
        }
        let access = Access {
            id,
            pa: executed.mem.pa(),
            mmio: executed.mem.mmio(),
            store: passed.found.store(),
            walk: output.data_walk(passed.found),
        };
        if COUNTED {
            self.begin_access(executed.mem);
        }
        // An exception takes the count back.
        self.stats.instructions += 1;
        match micro_op.kind {
            _ if executed.trap.is_some() => self.retire_alone(executed, &access),
            Kind::Unique | Kind::Trap => self.retire_alone(executed, &access),
            Kind::Alu => self.alu::<COUNTED>(micro_op, id),
            Kind::Branch => self.branch::<COUNTED>(micro_op, id, &passed.forecast),
            Kind::Jump => self.jump::<COUNTED>(micro_op, id, &passed.forecast),
            Kind::Load => self.load::<COUNTED>(micro_op, &access),
            Kind::Store => self.store::<COUNTED>(micro_op, &access),
            Kind::Divide | Kind::FpDivide => {
                self.divide::<COUNTED>(micro_op, id, &executed.operand)
            }
            Kind::Simple => self.simple::<COUNTED>(micro_op, id),
            Kind::Ideal => {
                self.ideal::<COUNTED>(micro_op, &access, &passed.forecast);
            }
        }
        if COUNTED && std::mem::take(&mut self.trainings.starts) {
            self.trainings.committed(self.window.committed);
        }
        self.send();
    }

    /// Passes the next run that was followed, which has that extent; returns the cycle in which its last instruction is
    /// decoded.
    pub(crate) fn run(&mut self, extent: Extent, output: &mut Reader<'_>) -> u64 {
        if self.window.committed > self.observer.excerpts.look {
            self.turn_excerpt();
        }
        match self.is_looked_at() {
            false => self.run_as::<false>(extent, output),
            true => self.run_as::<true>(extent, output),
        }
    }

    #[inline(never)]
    fn run_as<const COUNTED: bool>(&mut self, extent: Extent, output: &mut Reader<'_>) -> u64 {
        // Put aside, so that a micro-op can be referred to while the core changes.
        let static_info = std::mem::take(&mut self.micro_ops);
        let mut steps = output.run(extent);
        let mut instructions = 0;
        while let Some(step) = steps.next() {
            let id = step.id();
            let mut micro_op = &static_info[id.0 as usize];
            let changed;
            if COUNTED && let Some(dependences) = &mut self.dependences {
                changed = dependences.next(id, micro_op, &mut self.registers);
                micro_op = &changed;
            }
            instructions += 1;
            let mut packet = None;
            let mut walk = None;
            if step.starts() {
                let starts = steps.packet();
                packet = Some(starts);
                walk = output.packet_walk(starts);
            }
            self.decode(packet, walk);
            let kind = micro_op.kind;
            if kind.is(Kind::Alu) {
                self.alu::<COUNTED>(micro_op, id);
            } else if kind.is(Kind::Branch) {
                self.branch::<COUNTED>(micro_op, id, &steps.forecast());
            } else if kind.is(Kind::Load) | kind.is(Kind::Store) {
                let found = steps.found();
                if COUNTED {
                    self.begin_access(output.observed());
                }
                let access = &Access {
                    id,
                    pa: found.pa(),
                    mmio: false,
                    store: found.store(),
                    walk: output.data_walk(found),
                };
                match kind.is(Kind::Load) {
                    true => self.load::<COUNTED>(micro_op, access),
                    false => self.store::<COUNTED>(micro_op, access),
                }
            } else if kind.is(Kind::Jump) {
                self.jump::<COUNTED>(micro_op, id, &steps.forecast());
            } else if kind.is(Kind::Divide) | kind.is(Kind::FpDivide) {
                let operand = match kind.is(Kind::Divide) {
                    true => output.operand(),
                    false => Operand::default(),
                };
                self.divide::<COUNTED>(micro_op, id, &operand);
            } else if kind.is(Kind::Simple) {
                self.simple::<COUNTED>(micro_op, id);
            } else {
                // A copy is lent, so that the steps themselves are in registers.
                let mut rest = steps.clone();
                self.ideal_in_run::<COUNTED>(micro_op, id, &mut rest, output);
                steps = rest;
            }
            if COUNTED && step.starts() {
                self.trainings.committed(self.window.committed);
            }
        }
        self.micro_ops = static_info;
        self.stats.instructions += instructions;
        self.send();
        self.front.buffer.cycle()
    }

    /// Takes the interrupt that the instruction fetched last was tagged with.
    pub(crate) fn interrupt(&mut self, id: StaticId) {
        self.take_interrupt(id);
        self.send();
    }

    /// Sleeps until `cycle`.
    pub(crate) fn idle_until(&mut self, cycle: u64) {
        self.end_excerpt();
        let from = self.window.committed;
        // Fetch restarts in any case: the path starts a packet.
        self.front.redirect(cycle.max(from) + 1);
        if cycle <= from {
            return;
        }
        self.stats.cycles_idle += cycle - from;
        self.selections.sleep(from, cycle, &self.window);
        self.window.committed = cycle;
        self.records.sent = cycle;
        self.sink.event(from, Event::Idle { cycles: cycle - from });
    }

    /// Does to the caches what other harts asked for, which may have taken lines.
    pub(crate) fn other_harts_executed(&mut self) {
        self.lsu.heed_probes();
    }

    /// Returns the cycle in which a CSR instruction that was fetched last accesses its register: dispatched into the
    /// empty ROB, write-back 4 cycles later.
    pub(crate) fn now(&self) -> u64 {
        (self.front.buffer.cycle() + 1).max(self.window.empty()) + CSR_ACCESS
    }

    /// Sets what a counter counts from now on.
    pub(crate) fn select(&mut self, counter: usize, selection: Selection) {
        let start = self.following();
        self.selections.select(counter, selection, start);
    }

    /// Drops every translation.
    pub(crate) fn flush_tlb(&mut self) {
        self.stats.tlb_flushes += 1;
        self.lsu.flush_tlb();
    }

    /// Notes that a device wrote lines of RAM: they are in no hart's data caches any more.
    #[cold]
    pub(crate) fn dma_write(&mut self, lines: DmaLines) {
        lines.lines().for_each(|line| self.lsu.dma_write(line));
    }

    /// Adds an event to the stream at this place, after all that has committed.
    pub(crate) fn event(&mut self, event: Event) {
        self.sink.event(self.window.committed, event);
    }

    /// Notes that the privilege changed.
    pub(crate) fn privilege(&mut self, privilege: Privilege) {
        self.selections.close_cycles(&self.window);
        self.sink.event(self.window.committed, Event::Privilege(privilege as u8));
    }
}

/// Returns the stream's number of a static instruction.
#[inline(always)]
pub(crate) fn stream_id(id: StaticId) -> InstId {
    InstId(id.0)
}

const _: () = assert!((NO_REG as usize) < REGISTERS);
