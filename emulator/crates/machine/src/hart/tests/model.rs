//! A timing model that checks the contract and writes down what it is told.

use isa::*;

/// Every instruction decodes one cycle after the last one was retired, which takes `latency` cycles.
pub struct Model {
    pub now: u64,
    pub latency: u64,
    pub defined: Vec<StaticInst>,
    pub retired: Vec<Executed>,
    pub interrupts: Vec<(u64, u64)>,
    pub regions: Vec<bool>,
    pub flushes: u32,
    privilege: Privilege,
    fetched: Option<(StaticId, u64)>,
}

impl Model {
    pub fn new() -> Self {
        Self::with_latency(1)
    }

    pub fn with_latency(latency: u64) -> Self {
        Self {
            now: 0,
            latency,
            defined: Vec::new(),
            retired: Vec::new(),
            interrupts: Vec::new(),
            regions: Vec::new(),
            flushes: 0,
            privilege: Privilege::Machine,
            fetched: None,
        }
    }
}

impl TimingModel for Model {
    const TIMED: bool = true;

    fn define(&mut self, inst: &StaticInst) {
        assert_eq!(inst.id.0 as usize, self.defined.len());
        self.defined.push(*inst);
    }

    fn fetch(
        &mut self,
        id: StaticId,
        inst: &DecodedInst,
        pc: u64,
        pa: u64,
        translated: bool,
        walker: &impl PageWalker,
    ) -> u64 {
        assert!(self.fetched.is_none());
        let defined = &self.defined[id.0 as usize];
        assert_eq!((defined.pc, defined.inst.raw), (pc, inst.raw));
        assert_eq!(walker.walk(pc).levels != 0, translated);
        assert!(translated || inst.class == InstClass::Illegal || pa == pc);
        self.fetched = Some((id, pc));
        self.now + 1
    }

    fn interrupt(&mut self, id: StaticId, pc: u64, handler_pc: u64) {
        assert_eq!(self.fetched.take(), Some((id, pc)));
        self.interrupts.push((pc, handler_pc));
        self.now += self.latency;
    }

    fn retire(&mut self, executed: &Executed, _: &impl PageWalker) {
        assert_eq!(self.fetched.take(), Some((executed.id, executed.pc)));
        assert_eq!(executed.privilege, self.privilege);
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

    fn privilege(&mut self, privilege: Privilege) {
        self.privilege = privilege;
    }

    fn region(&mut self, start: bool) {
        self.regions.push(start);
    }
}
