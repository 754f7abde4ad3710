//! What the model says of each outcome of a program.

use std::collections::BTreeSet;

use crate::model::{Model, allowed_outcomes};
use crate::program::{Outcome, Program};
use crate::run::Histogram;

/// What the model says of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Some interleaving of the harts' instructions has it.
    Sequential,
    /// RVWMO allows it, though no interleaving has it.
    Weak,
    /// RVWMO forbids it.
    Forbidden,
}

/// A program with what the model allows of it.
pub struct Judged {
    /// The program.
    pub program: Program,
    /// Outcomes that RVWMO allows.
    pub allowed: BTreeSet<Outcome>,
    /// Outcomes that sequential consistency allows, all of which RVWMO allows, too.
    pub sequential: BTreeSet<Outcome>,
}

impl Judged {
    /// Asks the model about a program.
    pub fn new(program: Program) -> Self {
        let allowed = allowed_outcomes(&program, Model::Rvwmo);
        let sequential = allowed_outcomes(&program, Model::SequentialConsistency);
        Self { program, allowed, sequential }
    }

    /// Returns what the model says of an outcome.
    pub fn verdict(&self, outcome: Outcome) -> Verdict {
        if self.sequential.contains(&outcome) {
            Verdict::Sequential
        } else if self.allowed.contains(&outcome) {
            Verdict::Weak
        } else {
            Verdict::Forbidden
        }
    }

    /// Returns what the model says of the outcome that the test is about: the mildest verdict, if several outcomes are that.
    pub fn verdict_of_condition(&self) -> Verdict {
        let any = |set: &BTreeSet<Outcome>| set.iter().any(|o| self.program.meets_condition(*o));
        if any(&self.sequential) {
            Verdict::Sequential
        } else if any(&self.allowed) {
            Verdict::Weak
        } else {
            Verdict::Forbidden
        }
    }

    /// Returns the outcomes that are weak.
    pub fn weak(&self) -> impl Iterator<Item = Outcome> {
        self.allowed.difference(&self.sequential).copied()
    }

    /// Returns the outcomes of a histogram with a verdict, and how often each occurred.
    pub fn of_verdict(&self, histogram: &Histogram, verdict: Verdict) -> Histogram {
        let is_it = |(outcome, _): &(&Outcome, &u64)| self.verdict(**outcome) == verdict;
        histogram.iter().filter(is_it).map(|(outcome, count)| (*outcome, *count)).collect()
    }
}
