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

/// What a target buffer knows of a branch: the low half of its target decides equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub conditional: bool,
    pub target: u32,
}

/// What the front end believes of one branch in each stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guess {
    /// F1: the micro BTB's entry, and whether it would redirect.
    pub f1: Option<Known>,
    /// F1's direction.
    pub f1_taken: bool,
    /// F2: the BTB's entry, else the micro BTB's.
    pub f2: Option<Known>,
    /// F2's direction.
    pub f2_taken: bool,
    /// F3's direction of a conditional branch.
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
        let micro = self.micro_btb.find(at);
        let buffer = self.btb.find(at);
        let base = self.bimodal.predict(at);
        let mut f3_taken = match &mut self.tage {
            Some(tage) => tage.branch(at, history, base, taken),
            None => base,
        };
        if let Some(loops) = &mut self.loops {
            f3_taken = loops.branch(at, f3_taken, taken);
        }
        self.bimodal.train(at, taken);
        self.micro_btb.train(at, micro.way, true, taken, target);
        self.btb.train(at, buffer.way, true, taken, target);
        let f2 = buffer.known.or(micro.known);
        Guess {
            f1: micro.known,
            f1_taken: micro.taken,
            f2,
            // A stale entry that says "jump" redirects whatever the direction.
            f2_taken: f2.is_some_and(|k| base || !k.conditional),
            f3_taken,
        }
    }

    /// Looks up a jump and trains with its target.
    #[inline]
    pub fn jump(&mut self, at: Place, target: u64) -> Guess {
        let micro = self.micro_btb.find(at);
        let buffer = self.btb.find(at);
        self.micro_btb.train(at, micro.way, false, true, target);
        self.btb.train(at, buffer.way, false, true, target);
        let f2 = buffer.known.or(micro.known);
        Guess {
            f1: micro.known,
            f1_taken: micro.taken,
            f2,
            f2_taken: f2.is_some_and(|k| !k.conditional || self.bimodal.predict(at)),
            f3_taken: true,
        }
    }
}

/// An entry found, or where to write it.
#[derive(Clone, Copy, Debug)]
pub(self) struct Found {
    pub known: Option<Known>,
    pub taken: bool,
    /// Way that hit; a miss gives an implementation-chosen way with the top bit set.
    pub way: u8,
}

/// Two-bit saturating counter.
#[inline(always)]
pub(self) fn saturate(counter: u8, taken: bool) -> u8 {
    if taken { (counter + 1).min(3) } else { counter.saturating_sub(1) }
}
