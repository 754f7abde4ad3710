//! Branch prediction: BOOM's TAGE-L, component by component (`ifu/bpd/*`).
//!
//! Every component has two banks of 8 bytes of code, four 2-byte slots each. What is known about a branch is
//! asked for when the branch comes by in program order, with the history that its packet saw, and
//! trained at once with its outcome. In hardware training happens at commit: not modelled is that a
//! branch in a tight loop is predicted with counters that its last few outcomes have not reached.

mod bimodal;
mod btb;
mod history;
mod loops;
mod micro_btb;
mod returns;
mod tage;

pub(crate) use history::{History, Outcome};
pub(crate) use returns::Returns;

use snapshot::{Archive, Snapshot};

use crate::Preset;
use bimodal::Bimodal;
use btb::Btb;
use loops::Loops;
use micro_btb::MicroBtb;
use tage::Tage;

/// Where a branch stands: 16-byte fetch block, bank of 8 bytes, 2-byte slot. Both banks share a block's index.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place(u64);

snapshot::snapshot!(Place(0));

impl Place {
    /// The place of the instruction at `pc`.
    #[inline(always)]
    pub fn new(pc: u64) -> Self {
        Self(pc)
    }

    /// Number of the block.
    #[inline(always)]
    fn block(self) -> u32 {
        (self.0 >> 4) as u32
    }

    #[inline(always)]
    fn bank(self) -> usize {
        (self.0 >> 3) as usize & 1
    }

    /// Bank and slot: the column of a table.
    #[inline(always)]
    fn column(self) -> usize {
        (self.0 >> 1) as usize & (COLUMNS - 1)
    }

    /// Block, bank and slot: the place in a table without tags.
    #[inline(always)]
    fn index(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// The place in another block.
    fn in_block(self, block: u32) -> Self {
        Self(u64::from(block) << 4 | self.0 & 15)
    }

    /// All slots of its bank.
    fn bank_slots(self) -> impl Iterator<Item = Self> {
        (0..8).step_by(2).map(move |slot| Self(self.0 & !7 | slot))
    }

    /// The low half of its address.
    fn pc(self) -> u32 {
        self.0 as u32 & !1
    }
}

/// Banks by slots.
const COLUMNS: usize = 8;

/// What a target buffer knows of a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// It has an entry.
    hit: bool,
    /// A conditional branch, not a jump.
    conditional: bool,
    /// If it is conditional: the entry takes it for taken.
    strong: bool,
    /// The low half of the target, which decides equality.
    target: u32,
    /// Way of the entry.
    way: u8,
}

/// What a branch or jump was, to train with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taught {
    /// A conditional branch, not a jump.
    pub conditional: bool,
    /// It left the packet; always, for a jump.
    pub taken: bool,
    /// Where it went, the low half.
    pub target: u32,
}

snapshot::snapshot!(Taught {
    conditional,
    taken,
    target
});

/// When a branch is predicted, and when it trains the predictor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// F1 of its packet.
    pub predicted: u64,
    /// After its commit.
    pub trained: u64,
}

impl Known {
    /// It says of the branch what is true.
    #[inline(always)]
    fn same(self, branch: &Taught) -> bool {
        self.hit
            & (self.conditional == branch.conditional)
            & (!branch.taken | (self.target == branch.target))
    }

    /// What the stage that believes this does, if the direction of a conditional branch is `taken`.
    #[inline(always)]
    fn stage(self, branch: &Taught, taken: bool) -> Stage {
        Stage {
            leaves: self.hit & (taken | !self.conditional),
            right: (self.target == branch.target) & (self.conditional == branch.conditional),
            sees: self.hit & self.conditional,
            target: self.hit & (self.target == branch.target),
        }
    }
}

/// What one stage of the front end does about a branch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    /// It leaves the packet there.
    pub leaves: bool,
    /// If it leaves, it goes where the branch went, and for the right reason.
    pub right: bool,
    /// It knows of a conditional branch.
    pub sees: bool,
    /// It knows where the branch went.
    pub target: bool,
}

impl Stage {
    /// A stage that knows of no branch.
    const UNKNOWING: Self = Self {
        leaves: false,
        right: false,
        sees: false,
        target: false,
    };

    /// A stage that knows all but the direction.
    #[inline(always)]
    fn knowing(branch: &Taught, taken: bool) -> Self {
        Self {
            leaves: taken | !branch.conditional,
            right: true,
            sees: branch.conditional,
            target: true,
        }
    }
}

/// What the front end does about one branch in each stage: F1 by the micro BTB, F2 by the BTB or else
/// the micro BTB with the bimodal table's direction, F3 by the final direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guess {
    pub f1: Stage,
    pub f2: Stage,
    pub f3_taken: bool,
}

/// All components.
pub(crate) struct Predictor {
    micro_btb: MicroBtb,
    btb: Btb,
    bimodal: Bimodal,
    tage: Option<Tage>,
    loops: Option<Loops>,
}

impl Snapshot for Predictor {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self {
            micro_btb,
            btb,
            bimodal,
            tage,
            loops,
        } = self;
        micro_btb.snapshot(archive)?;
        btb.snapshot(archive)?;
        bimodal.snapshot(archive)?;
        if let Some(tage) = tage {
            tage.snapshot(archive)?;
        }
        if let Some(loops) = loops {
            loops.snapshot(archive)?;
        }
        Ok(())
    }
}

impl Predictor {
    pub fn new(preset: &Preset) -> Self {
        let p = &preset.predictor;
        Self {
            micro_btb: MicroBtb::new(p.micro_btb),
            btb: Btb::new(p.btb_sets),
            bimodal: Bimodal::new(p.bimodal_sets),
            tage: p.tage.then(Tage::new),
            loops: p.loops.then(Loops::new),
        }
    }

    /// Predicts a conditional branch and trains with its outcome. `history` is what its bank saw.
    #[inline(always)]
    pub fn branch(
        &mut self,
        at: Place,
        history: u64,
        taken: bool,
        target: u64,
        when: Moment,
    ) -> Guess {
        let base = self.bimodal.branch(at, taken);
        let branch = Taught {
            conditional: true,
            taken,
            target: target as u32,
        };
        let (f1, f2) = self.targets(at, &branch, base, when);
        let mut f3_taken = match &mut self.tage {
            Some(tage) => tage.branch(at, history, base, taken),
            None => base,
        };
        if let Some(loops) = &mut self.loops {
            f3_taken = loops.branch(at, f2.sees, f3_taken, taken);
        }
        Guess { f1, f2, f3_taken }
    }

    /// Looks up a jump and trains with its target.
    #[inline(always)]
    pub fn jump(&mut self, at: Place, target: u64, when: Moment) -> Guess {
        let branch = Taught {
            conditional: false,
            taken: true,
            target: target as u32,
        };
        let base = self.bimodal.predict(at);
        let (f1, f2) = self.targets(at, &branch, base, when);
        Guess {
            f1,
            f2,
            f3_taken: true,
        }
    }

    /// What F1 and F2 do; then both buffers are trained. An entry that says "jump" redirects whatever the
    /// direction.
    #[inline(always)]
    fn targets(&mut self, at: Place, branch: &Taught, base: bool, when: Moment) -> (Stage, Stage) {
        if let Some(counter) = self.micro_btb.settled(at, branch, when) {
            let strong = *counter >= 2;
            *counter = saturate(*counter, branch.taken);
            let stage = |taken| Stage::knowing(branch, taken);
            return (stage(strong), stage(base));
        }
        self.targets_of_unsettled(at, branch, base, when)
    }

    #[inline(never)]
    fn targets_of_unsettled(
        &mut self,
        at: Place,
        branch: &Taught,
        base: bool,
        when: Moment,
    ) -> (Stage, Stage) {
        let (f1, f2) = (self.micro_btb.find(at), self.btb.find(at));
        if !f1.hit & f2.same(branch) {
            // Programs with more branches than the micro BTB has ways mostly come by here.
            self.micro_btb.write(at, f1, branch, when);
            return (Stage::UNKNOWING, Stage::knowing(branch, base));
        }
        if f1.same(branch) {
            self.micro_btb.confirm(at, f1, branch.taken, when);
        } else {
            self.micro_btb.write(at, f1, branch, when);
        }
        if !f2.same(branch)
            && let Some(gone) = self.btb.write(at, f2, branch)
        {
            self.micro_btb.settle(gone, false);
        }
        // Of an entry that is yet to be written, nothing can be settled.
        if f1.hit {
            let (micro, main) = (self.micro_btb.find(at), self.btb.find(at));
            self.micro_btb.settle(
                at,
                main.hit & (main.target == micro.target) & (main.conditional == micro.conditional),
            );
        }
        let last = if f2.hit { f2 } else { f1 };
        (f1.stage(branch, f1.strong), last.stage(branch, base))
    }
}

/// Two-bit saturating counter.
#[inline(always)]
fn saturate(counter: u8, taken: bool) -> u8 {
    const NEXT: [[u8; 4]; 2] = [[0, 0, 1, 2], [1, 2, 3, 3]];
    NEXT[usize::from(taken)][usize::from(counter & 3)]
}
