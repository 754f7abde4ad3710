//! A timing model that checks the contract and writes down what it is told.

use std::collections::HashMap;

use isa::*;

/// Every instruction decodes one cycle after the last one was retired, which takes `latency` cycles.
pub(super) struct Model {
    pub now: u64,
    pub latency: u64,
    pub defined: Vec<StaticInst>,
    pub retired: Vec<Executed>,
    pub interrupts: Vec<(u64, u64)>,
    pub flushes: u32,
    /// Lines that devices wrote.
    pub dma: Vec<DmaLines>,
    privilege: Privilege,
    fetched: Option<(StaticId, u64)>,
    /// By page: entries that its walk reads.
    walks: HashMap<u64, u8>,
}

impl Model {
    pub(super) fn new() -> Self {
        Self::with_latency(1)
    }

    pub(super) fn with_latency(latency: u64) -> Self {
        Self {
            now: 0,
            latency,
            defined: Vec::new(),
            retired: Vec::new(),
            interrupts: Vec::new(),
            flushes: 0,
            dma: Vec::new(),
            privilege: Privilege::Machine,
            fetched: None,
            walks: HashMap::new(),
        }
    }

    /// The hart has walked the page tables for the page of `va`.
    fn knows(&self, va: u64) -> bool {
        self.walks.get(&(va >> 12)).is_some_and(|&levels| levels != 0)
    }
}

impl TimingModel for Model {
    const TIMED: bool = true;

    fn define(&mut self, inst: &StaticInst) {
        assert_eq!(inst.id.0 as usize, self.defined.len());
        self.defined.push(*inst);
    }

    fn translated(&mut self, va: u64, walk: &PageWalk) {
        self.walks.insert(va >> 12, walk.levels);
    }

    fn fetch(
        &mut self,
        id: StaticId,
        inst: &DecodedInst,
        pc: u64,
        pa: u64,
        translated: bool,
        _: u64,
    ) -> u64 {
        assert!(self.fetched.is_none());
        let defined = &self.defined[id.0 as usize];
        assert_eq!((defined.pc, defined.inst.raw), (pc, inst.raw));
        assert!(!translated || self.knows(pc));
        assert!(translated || inst.class == InstClass::Illegal || pa == pc);
        self.fetched = Some((id, pc));
        self.now + 1
    }

    fn interrupt(&mut self, id: StaticId, pc: u64, handler_pc: u64) {
        assert_eq!(self.fetched.take(), Some((id, pc)));
        self.interrupts.push((pc, handler_pc));
        self.now += self.latency;
    }

    fn retire(&mut self, executed: &Executed) {
        assert_eq!(self.fetched.take(), Some((executed.id, executed.pc)));
        assert_eq!(executed.privilege, self.privilege);
        let accessed = executed.translated && executed.mem.kind() != MemKind::None;
        assert!(!accessed || self.knows(executed.mem.va));
        self.retired.push(*executed);
        self.now += self.latency;
    }

    fn idle_until(&mut self, cycle: u64) {
        self.now = self.now.max(cycle);
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn count(&self, _: PerfEvent) -> u64 {
        0
    }

    fn flush_tlb(&mut self) {
        self.flushes += 1;
    }

    fn dma_write(&mut self, lines: DmaLines) {
        self.dma.push(lines);
    }

    fn privilege(&mut self, privilege: Privilege) {
        self.privilege = privilege;
    }
}

/// A [`Model`] that takes runs.
pub(super) struct InRuns {
    pub model: Model,
    /// Instructions of each run.
    pub lengths: Vec<usize>,
}

impl InRuns {
    pub(super) fn new() -> Self {
        Self { model: Model::new(), lengths: Vec::new() }
    }
}

impl TimingModel for InRuns {
    const TIMED: bool = true;
    const RUNS: bool = true;

    fn define(&mut self, inst: &StaticInst) {
        self.model.define(inst);
    }

    fn translated(&mut self, va: u64, walk: &PageWalk) {
        self.model.translated(va, walk);
    }

    fn fetch(
        &mut self,
        id: StaticId,
        inst: &DecodedInst,
        pc: u64,
        pa: u64,
        translated: bool,
        before: u64,
    ) -> u64 {
        self.model.fetch(id, inst, pc, pa, translated, before)
    }

    fn interrupt(&mut self, id: StaticId, pc: u64, handler_pc: u64) {
        self.model.interrupt(id, pc, handler_pc);
    }

    fn retire(&mut self, executed: &Executed) {
        self.model.retire(executed);
    }

    fn run(&mut self, run: &Run<'_>, before: u64) -> u64 {
        self.lengths.push(run.steps.len());
        let (mut accesses, mut operands) = (run.accesses.iter(), run.operands.iter());
        let mut decoded = 0;
        for (n, step) in run.steps.iter().enumerate() {
            let (id, pc) = (step.id, run.pc(step));
            let inst = self.model.defined[id.0 as usize].inst;
            assert!(!inst.class.serialises());
            assert_eq!(*step, Step::new(id, step.offset(), inst.class, inst.len));
            let fetch_pa = run.page | pc & 0xfff;
            decoded = self.fetch(id, &inst, pc, fetch_pa, run.translated, before);
            let executed = Executed {
                id,
                inst,
                pc,
                fetch_pa,
                next_pc: run.steps.get(n + 1).map_or(run.next_pc, |next| run.pc(next)),
                mem: match inst.class.accesses_memory() {
                    true => *accesses.next().unwrap(),
                    false => MemAccess::default(),
                },
                operand: match inst.class {
                    InstClass::IntDiv => *operands.next().unwrap(),
                    _ => Operand::default(),
                },
                privilege: run.privilege,
                trap: None,
                translated: run.translated,
            };
            self.retire(&executed);
        }
        assert!(accesses.next().is_none() && operands.next().is_none());
        decoded
    }

    fn idle_until(&mut self, cycle: u64) {
        self.model.idle_until(cycle);
    }

    fn now(&self) -> u64 {
        self.model.now()
    }

    fn count(&self, event: PerfEvent) -> u64 {
        self.model.count(event)
    }

    fn flush_tlb(&mut self) {
        self.model.flush_tlb();
    }

    fn dma_write(&mut self, lines: DmaLines) {
        self.model.dma_write(lines);
    }

    fn privilege(&mut self, privilege: Privilege) {
        self.model.privilege(privilege);
    }
}

/// Kind, whether a branch was taken, and target of a control transfer.
pub(super) type Transfer = (TransferKind, bool, u64);

/// Address and length of an instruction, and what it did to the path.
pub(super) type LoggedInst = (u64, u8, Option<Transfer>);

/// A model that keeps caches warm, which never evict anything, and writes down what it is told.
pub(super) struct Warms {
    shows: bool,
    filters: [LineFilter; 3],
    /// Virtual and physical address and kind of each access, and of each line of code, without a kind.
    pub told: Vec<(u64, u64, Option<MemKind>)>,
    log: PathLog,
    /// Address, length and what each executed instruction did to the path, whatever segments they were logged in.
    pub path: Vec<LoggedInst>,
    /// Cycles that the hart waits in each turn.
    pub delay: u64,
}

impl Warms {
    /// Returns a model whose filters show what was accessed, or nothing.
    pub(super) fn new(shows: bool) -> Self {
        Self {
            shows,
            filters: Default::default(),
            told: Vec::new(),
            log: PathLog::default(),
            path: Vec::new(),
            delay: 0,
        }
    }
}

/// A model that only has the path logged.
pub(super) struct Logs(pub Warms);

impl TimingModel for Logs {
    const TIMED: bool = false;
    const LOGS: bool = true;

    fn path_log(&mut self) -> Option<&mut PathLog> {
        self.0.path_log()
    }

    fn take_path_log(&mut self) {
        self.0.take_path_log();
    }

    isa::methods_without_timing!();
    fn flush_tlb(&mut self) {}
    fn privilege(&mut self, _: Privilege) {}
}

impl TimingModel for Warms {
    const TIMED: bool = false;
    const WARMS: bool = true;

    fn line_filters(&self) -> Option<LineFilters<'_>> {
        let [loads, stores, fetches] = &self.filters;
        Some(LineFilters { loads, stores, fetches })
    }

    /// Not a whole number of cycles, so that fractions would be lost where a run ends.
    fn warm_rate(&self) -> u64 {
        47_017
    }

    fn take_delay(&mut self) -> u64 {
        self.delay
    }

    fn warm_access(&mut self, access: &MemAccess, _: bool) {
        self.told.push((access.va, access.pa(), Some(access.kind())));
        let line = access.pa() >> FILTER_LINE_BITS;
        if self.shows {
            self.filters[0].show(line);
            if access.kind() != MemKind::Load {
                self.filters[1].show(line);
            }
        }
    }

    fn warm_fetch(&mut self, pc: u64, pa: u64, _: bool) {
        self.told.push((pc, pa, None));
        if self.shows {
            self.filters[2].show(pa >> FILTER_LINE_BITS);
        }
    }

    fn path_log(&mut self) -> Option<&mut PathLog> {
        Some(&mut self.log)
    }

    fn take_path_log(&mut self) {
        for segment in self.log.segments() {
            let lengths = segment.lengths;
            for number in 0..lengths.count() {
                let pc = segment.start().wrapping_add(lengths.bytes(number));
                let last = number + 1 == lengths.count();
                let kind = segment.kind().filter(|_| last);
                let transfer = kind.map(|kind| (kind, segment.taken(), segment.target()));
                self.path.push((pc, lengths.len_at(number), transfer));
            }
        }
        self.log.clear();
    }

    isa::methods_without_timing!();
    fn flush_tlb(&mut self) {}
    fn privilege(&mut self, _: Privilege) {}
}
