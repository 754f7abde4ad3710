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

use crate::Preset;
use bimodal::Bimodal;
use btb::Btb;
use loops::Loops;
use micro_btb::MicroBtb;
use tage::Tage;

/// Where a branch stands: bank, index of the fetch block, 2-byte slot of the bank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub bank: usize,
    pub block: u32,
    pub slot: usize,
}

impl Place {
    /// The place of the instruction at `pc`. Both banks of a 16-byte block share its index.
    #[inline(always)]
    pub fn new(pc: u64) -> Self {
        Self {
            bank: (pc >> 3) as usize & 1,
            block: (pc >> 4) as u32,
            slot: (pc >> 1) as usize & 3,
        }
    }
}

/// What a target buffer knows of a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// It has an entry.
    pub hit: bool,
    /// A conditional branch, not a jump.
    pub conditional: bool,
    /// It would leave the packet.
    pub taken: bool,
    /// The low half of the target, which decides equality.
    pub target: u32,
    /// Way of the entry.
    way: u8,
}

/// What the front end believes of one branch in each stage: F1 from the micro BTB, F2 from the BTB or
/// else the micro BTB with the bimodal table's direction, F3 the final direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guess {
    pub f1: Known,
    pub f2: Known,
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
    #[inline]
    pub fn branch(&mut self, at: Place, history: u64, taken: bool, target: u64) -> Guess {
        let base = self.bimodal.branch(at, taken);
        let (f1, f2) = self.targets(at, true, base, taken, target);
        let mut f3_taken = match &mut self.tage {
            Some(tage) => tage.branch(at, history, base, taken),
            None => base,
        };
        if let Some(loops) = &mut self.loops {
            f3_taken = loops.branch(at, f3_taken, taken);
        }
        Guess { f1, f2, f3_taken }
    }

    /// Looks up a jump and trains with its target.
    #[inline]
    pub fn jump(&mut self, at: Place, target: u64) -> Guess {
        let base = self.bimodal.predict(at);
        let (f1, f2) = self.targets(at, false, base, true, target);
        Guess {
            f1,
            f2,
            f3_taken: true,
        }
    }

    /// F1's and F2's view; then both buffers are trained.
    #[inline(always)]
    fn targets(
        &mut self,
        at: Place,
        conditional: bool,
        base: bool,
        taken: bool,
        target: u64,
    ) -> (Known, Known) {
        let f1 = self.micro_btb.find(at);
        let buffer = self.btb.find(at);
        self.micro_btb.train(at, f1, conditional, taken, target);
        self.btb.train(at, buffer, conditional, taken, target);
        let mut f2 = if buffer.hit { buffer } else { f1 };
        // An entry that says "jump" redirects whatever the direction.
        f2.taken = f2.hit & (base | !f2.conditional);
        (f1, f2)
    }
}

/// Two-bit saturating counter.
#[inline(always)]
fn saturate(counter: u8, taken: bool) -> u8 {
    if taken {
        (counter + 1).min(3)
    } else {
        counter.saturating_sub(1)
    }
}
