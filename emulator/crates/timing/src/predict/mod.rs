//! Branch prediction: BOOM's TAGE-L, component by component (`ifu/bpd/*`).
//!
//! Every component has two banks of 8 bytes of code, four 2-byte slots each. What is known about a branch is asked for
//! when the branch comes by in program order, with the history that its packet saw, and trained with its outcome. In
//! hardware training happens at commit. The BTB learns some packets later ([`late`]), on which indirect jumps depend;
//! TAGE and bimodal table do so with `predictor.at_commit` ([`at_commit`]), and at once without: then a branch in a tight
//! loop is predicted with counters that its last few outcomes have reached. The loop predictor learns when a branch has
//! resolved, as hardware's does. The micro BTB learns at commit by cycles, and so belongs to
//! the part of the front end that keeps time.

mod at_commit;
mod bimodal;
mod btb;
mod forecast;
mod history;
mod late;
mod loops;
mod micro_btb;
mod returns;
mod tage;

pub(crate) use forecast::{Component, Forecast, Last};
pub(crate) use history::{History, Outcome};
pub(crate) use micro_btb::MicroBtb;
pub(crate) use returns::Returns;

use snapshot::{Archive, Snapshot};

use crate::Preset;
use at_commit::AtCommit;
use bimodal::Bimodal;
use btb::Btb;
use late::Clock;
use loops::Loops;
use tage::Tage;

/// Where a branch stands: 16-byte fetch block, bank of 8 bytes, 2-byte slot. Both banks share a block's index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FetchSlot(u64);

snapshot::snapshot!(FetchSlot(0));

impl FetchSlot {
    /// Returns the place of the instruction at `pc`.
    #[inline(always)]
    pub(crate) fn new(pc: u64) -> Self {
        Self(pc)
    }

    /// Returns the number of the block.
    #[inline(always)]
    fn block(self) -> u32 {
        (self.0 >> 4) as u32
    }

    #[inline(always)]
    fn bank(self) -> usize {
        (self.0 >> 3) as usize & 1
    }

    /// Returns bank and slot: the column of a table.
    #[inline(always)]
    fn column(self) -> usize {
        (self.0 >> 1) as usize & (COLUMNS - 1)
    }

    /// Returns the first slot of the bank.
    fn bank_start(self) -> Self {
        Self(self.0 & !7)
    }

    /// Returns the slot of this number in the bank that begins with this one.
    fn slot(self, number: usize) -> Self {
        Self(self.0 | (number as u64 & 3) << 1)
    }

    /// Returns block, bank and slot: the place in a table without tags.
    #[inline(always)]
    fn index(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// Returns all slots of the bank.
    fn bank_slots(self) -> impl Iterator<Item = Self> {
        (0..COLUMNS / 2).map(move |slot| self.bank_start().slot(slot))
    }

    /// Returns the low half of the address.
    fn pc(self) -> u32 {
        self.0 as u32 & !1
    }
}

/// Columns of a table: banks by slots.
const COLUMNS: usize = 8;

/// What a target buffer knows of a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The buffer has an entry of the branch.
    pub hit: bool,
    /// The entry is of a conditional branch, not of a jump.
    conditional: bool,
    /// The entry, if it is of a conditional branch, takes it for taken.
    pub strong: bool,
    /// Low half of the target, which decides equality.
    target: u32,
    /// Way of the entry.
    way: u8,
}

/// What a branch or jump was, to train with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BranchOutcome {
    /// A conditional branch, not a jump.
    pub conditional: bool,
    /// The branch left the packet; true for every jump.
    pub taken: bool,
    /// Low half of the address where the branch or jump went.
    pub target: u32,
}

snapshot::snapshot!(BranchOutcome { conditional, taken, target });

impl BranchOutcome {
    /// Returns the outcome of a conditional branch that went to an address with the low half `next`.
    #[inline(always)]
    pub(crate) fn branch(taken: bool, next: u32) -> Self {
        Self { conditional: true, taken, target: next }
    }

    /// Returns the outcome of a jump to an address with the low half `next`.
    #[inline(always)]
    pub(crate) fn jump(next: u32) -> Self {
        Self { conditional: false, taken: true, target: next }
    }
}

impl Known {
    /// Returns true if the entry says of the branch what is true.
    #[inline(always)]
    pub(crate) fn same(self, branch: &BranchOutcome) -> bool {
        self.hit
            & (self.conditional == branch.conditional)
            & (!branch.taken | (self.target == branch.target))
    }

    /// Returns what the stage that believes the entry does, if the direction of a conditional branch is `taken`.
    #[inline(always)]
    pub(crate) fn stage(self, branch: &BranchOutcome, taken: bool) -> Stage {
        Stage {
            hit: self.hit,
            redirects: self.hit & (taken | !self.conditional),
            right: (self.target == branch.target) & (self.conditional == branch.conditional),
            sees: self.hit & self.conditional,
            target: self.hit & (self.target == branch.target),
        }
    }
}

/// What one stage of the front end does about a branch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stage {
    /// The stage has an entry of the branch.
    pub hit: bool,
    /// The stage leaves the packet at the branch.
    pub redirects: bool,
    /// The stage, if it leaves, goes where the branch went, and for the right reason.
    pub right: bool,
    /// The stage knows of a conditional branch.
    pub sees: bool,
    /// The stage knows where the branch went.
    pub target: bool,
}

/// The components that depend on nothing but the path.
pub(crate) struct Predictor {
    btb: Btb,
    bimodal: Bimodal,
    tage: Option<Tage>,
    loops: Option<Loops>,
    /// Stands for bimodal table and TAGE if these learn at commit.
    at_commit: Option<Box<AtCommit>>,
    clock: Clock,
}

impl Snapshot for Predictor {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self { btb, bimodal, tage, loops, at_commit, clock } = self;
        btb.snapshot(archive)?;
        bimodal.snapshot(archive)?;
        clock.snapshot(archive)?;
        if let Some(tage) = tage {
            tage.snapshot(archive)?;
        }
        if let Some(loops) = loops {
            loops.snapshot(archive)?;
        }
        if let Some(at_commit) = at_commit {
            at_commit.snapshot(archive)?;
        }
        Ok(())
    }
}

impl Predictor {
    pub(crate) fn new(preset: &Preset) -> Self {
        let p = &preset.predictor;
        Self {
            btb: Btb::new(p.btb_sets),
            bimodal: Bimodal::new(p.bimodal_sets),
            tage: (p.tage && !p.at_commit).then(Tage::new),
            loops: p.loops.then(Loops::new),
            at_commit: p.at_commit.then(|| Box::new(AtCommit::new(p.bimodal_sets, p.tage))),
            clock: Clock::default(),
        }
    }

    /// Notes that so many packets start.
    #[inline(always)]
    pub(crate) fn packets(&mut self, count: u64) {
        self.clock.packets(count);
    }

    /// Returns whether bimodal table and TAGE learn at commit, when the pipeline tells.
    pub(crate) fn learns_at_commit(&self) -> bool {
        self.at_commit.is_some()
    }

    /// Takes how many packets before the last one the pipeline has not trained with; `None`: it does not tell.
    pub(crate) fn told(&mut self, untrained: Option<u64>) {
        self.clock.told(untrained);
    }

    /// Returns the direction that F3 gives to a conditional branch on a wrong path, without its loop predictor.
    pub(crate) fn expects(&mut self, at: FetchSlot, history: u64) -> bool {
        match &mut self.at_commit {
            Some(at_commit) => at_commit.expects(at, history),
            None => false,
        }
    }

    /// Returns where the BTB says that the branch or jump at `pc` goes.
    pub(crate) fn expects_target(&self, at: FetchSlot, pc: u64) -> Option<u64> {
        let found = self.btb.find(at);
        found.hit.then(|| pc & !0xffff_ffff | u64::from(found.target))
    }

    /// Predicts a conditional branch, and has training with its outcome follow. `history` is what its bank saw.
    #[inline(always)]
    pub(crate) fn branch(
        &mut self,
        at: FetchSlot,
        history: u64,
        taken: bool,
        target: u64,
    ) -> Forecast {
        self.btb.train(self.clock.learns());
        if self.at_commit.is_some() {
            return self.branch_at_commit(at, history, taken, target);
        }
        let base = self.bimodal.branch(at, taken);
        let branch = BranchOutcome::branch(taken, target as u32);
        let (found, forecast) = ask_btb(&mut self.btb, self.clock, at, &branch, base);
        let (given, by_tage) = match &mut self.tage {
            Some(tage) => tage.branch(at, history, base, taken),
            None => (base, false),
        };
        let mut direction = given;
        if let Some(loops) = &mut self.loops {
            // Not modelled: that the loop predictor also counts what only the micro BTB knows.
            let known = found.hit & found.conditional;
            direction = loops.branch(at, known, direction, taken);
        }
        if direction == taken {
            return forecast;
        }
        self.clock.missed();
        forecast.by(by_tage, direction != given).with_f3_outcome(Last::Wrong)
    }

    /// Does what [`Self::branch`] does if bimodal table and TAGE learn at commit.
    #[inline(never)]
    fn branch_at_commit(
        &mut self,
        at: FetchSlot,
        history: u64,
        taken: bool,
        target: u64,
    ) -> Forecast {
        let Some(at_commit) = &mut self.at_commit else { return Forecast::default() };
        if let Some(packet) = self.clock.trained() {
            at_commit.train(packet);
        }
        let base = at_commit.base(at);
        let (given, by_tage, mut read) = at_commit.predict(at, history);
        let branch = BranchOutcome::branch(taken, target as u32);
        let (found, forecast) = ask_btb(&mut self.btb, self.clock, at, &branch, base);
        let mut direction = given;
        if let Some(loops) = &mut self.loops {
            read.iterations = loops.iterations(at);
            direction = loops.branch(at, found.hit & found.conditional, direction, taken);
        }
        let missed = direction != taken;
        if missed && let Some(loops) = &mut self.loops {
            let others = at_commit.others(self.clock.now(), at);
            others.for_each(|(other, iterations)| loops.missed_beside(other, iterations));
        }
        at_commit.branch(self.clock.now(), at, history, read, (taken, missed));
        if !missed {
            return forecast;
        }
        self.clock.missed();
        forecast.by(by_tage, direction != given).with_f3_outcome(Last::Wrong)
    }

    /// Looks up a jump, and has training with its target follow. What F3 does is `last`. `is_direct`: the instruction says where it goes.
    #[inline(always)]
    pub(crate) fn jump(
        &mut self,
        at: FetchSlot,
        target: u64,
        last: Last,
        is_direct: bool,
    ) -> Forecast {
        self.btb.train(self.clock.learns());
        let jump = BranchOutcome::jump(target as u32);
        let base = match &mut self.at_commit {
            None => self.bimodal.predict(at),
            Some(at_commit) => {
                if let Some(packet) = self.clock.trained() {
                    at_commit.train(packet);
                }
                at_commit.jump(self.clock.now(), at, is_direct);
                at_commit.base(at)
            }
        };
        let found = self.btb.find(at);
        let same = found.same(&jump);
        if last == Last::Wrong || last == Last::AsF2 && !same {
            self.clock.missed();
        }
        if !same {
            // The training comes after the packets that a misprediction takes.
            self.btb.write(self.clock.trains(), at, &jump);
        }
        let forecast = Forecast::new(at, &jump, base, found);
        forecast.with_f3_outcome(last)
    }
}

/// Returns what the BTB knows of a conditional branch, and the forecast with the bimodal table's direction; has training follow if the BTB was wrong.
#[inline(always)]
fn ask_btb(
    btb: &mut Btb,
    clock: Clock,
    at: FetchSlot,
    branch: &BranchOutcome,
    base: bool,
) -> (Known, Forecast) {
    let found = btb.find(at);
    if found.same(branch) {
        return (found, Forecast::of_known(at, branch, base, found.target == branch.target));
    }
    // Not modelled: that a branch which is mispredicted is trained with later.
    btb.write(clock.trains(), at, branch);
    (found, Forecast::new(at, branch, base, found))
}

/// Returns a two-bit saturating counter after an outcome.
#[inline(always)]
fn saturate(counter: u8, taken: bool) -> u8 {
    const NEXT: [[u8; 4]; 2] = [[0, 0, 1, 2], [1, 2, 3, 3]];
    NEXT[usize::from(taken)][usize::from(counter & 3)]
}
