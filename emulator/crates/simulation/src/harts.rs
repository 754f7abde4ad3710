//! The harts of a machine: at least one.

use isa::{Extensions, Privilege};
use machine::{Hart, ResetState};
use snapshot::{Archive, Snapshot};

use crate::error::SimulationError;
use crate::options::{HartOrder, Threads, Translator};

/// The harts, in order of their numbers. There is at least one.
pub struct Harts {
    harts: Vec<Hart>,
    translator: Translator,
    /// Hot code is translated by threads of their own.
    apart: bool,
}

impl Snapshot for Harts {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        // What is translated to host code does not change results.
        let Self { harts, translator: _, apart: _ } = self;
        harts.iter_mut().try_for_each(|hart| hart.snapshot(archive))
    }
}

impl Harts {
    /// Returns `count` harts, or one if that is 0, as they are after power-on.
    ///
    /// # Errors
    /// If the host cannot translate and `translator` says that it must.
    pub fn new(
        count: usize,
        extensions: Extensions,
        translator: Translator,
        threads: Threads,
    ) -> Result<Self, SimulationError> {
        let apart = threads.of_this_host() != Threads::One;
        let new_hart = |id| {
            let mut hart = Hart::new(id);
            hart.set_extensions(extensions);
            translate(&mut hart, translator, apart)?;
            Ok(hart)
        };
        let harts = (0..count.max(1)).map(new_hart).collect::<Result<_, SimulationError>>()?;
        Ok(Self { harts, translator, apart })
    }

    /// Sets how close to the order of simulated time the harts execute under timing cores.
    pub(crate) fn set_order(&mut self, order: HartOrder) {
        let each = order == HartOrder::EachInstruction;
        self.harts.iter_mut().for_each(|hart| hart.order_each_instruction(each));
    }

    /// Returns the first hart.
    pub fn first(&self) -> &Hart {
        &self.harts[0]
    }

    /// Returns the first hart.
    pub fn first_mut(&mut self) -> &mut Hart {
        &mut self.harts[0]
    }

    /// Returns hart `number`, or the first if there is no such hart.
    pub fn nth_or_first(&self, number: usize) -> &Hart {
        self.harts.get(number).unwrap_or(&self.harts[0])
    }

    /// Returns hart `number`, or the first if there is no such hart.
    pub fn nth_or_first_mut(&mut self, number: usize) -> &mut Hart {
        let number = if number < self.harts.len() { number } else { 0 };
        &mut self.harts[number]
    }

    /// Returns the harts, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Hart> {
        self.harts.iter()
    }

    /// Returns the harts, in order.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Hart> {
        self.harts.iter_mut()
    }

    /// Returns the number of harts, which is never 0.
    #[expect(clippy::len_without_is_empty, reason = "there is always a hart")]
    pub fn len(&self) -> usize {
        self.harts.len()
    }

    /// Returns the instructions that each hart retired, and its cycles, since reset.
    pub fn positions(&self) -> impl Iterator<Item = (u64, u64)> {
        self.iter().map(|hart| (hart.instructions(), hart.cycle()))
    }

    /// Returns the instructions that all harts retired since reset.
    pub fn instructions(&self) -> u64 {
        self.iter().map(Hart::instructions).sum()
    }

    /// Returns the cycle of the hart that is furthest: others may sleep.
    pub fn latest_cycle(&self) -> u64 {
        self.iter().map(Hart::cycle).max().unwrap_or(0)
    }

    /// Returns how often harts entered user mode since the machine was built; `None` while a hart is in user mode. Between two
    /// equal numbers no program has executed an instruction.
    pub fn user_entries(&self) -> Option<u64> {
        self.iter().map(Hart::user_entries).sum()
    }

    /// Returns what a hart does, in words, and its address.
    pub fn describe(&self, number: usize) -> (String, u64) {
        let hart = self.nth_or_first(number);
        let mode = match hart.privilege() {
            Privilege::User => "user",
            Privilege::Supervisor => "supervisor",
            Privilege::Machine => "machine",
        };
        let asleep = if hart.is_asleep() { ", asleep" } else { "" };
        (format!("hart {number}, {mode} mode{asleep}"), hart.pc())
    }

    /// Sets the harts' registers to what they are at reset; each gets its own number.
    pub fn reset(&mut self, state: ResetState) {
        for hart in &mut self.harts {
            hart.set_pc(state.pc);
            let id = state.a0 + hart.id() as u64;
            for (reg, value) in [(10, id), (11, state.a1), (12, state.a2)] {
                hart.set_reg(reg, value);
            }
        }
    }

    /// Makes the harts what they were when they were new, for a state to be loaded into them.
    ///
    /// # Errors
    /// If the host cannot translate and must.
    pub fn renew(&mut self) -> Result<(), SimulationError> {
        let Self { translator, apart, .. } = *self;
        self.harts.iter_mut().try_for_each(|hart| {
            hart.renew();
            translate(hart, translator, apart)
        })
    }

    /// Opens all memory to all privileges on every hart, as Spike does at reset: programs of the public suites go
    /// to S and U without setting the PMP.
    pub fn permit_all_memory(&mut self) {
        self.harts.iter_mut().for_each(Hart::permit_all_memory);
    }

    /// Lets runs end where a region of interest starts or ends.
    pub fn stop_at_regions(&mut self, stop: bool) {
        self.harts.iter_mut().for_each(|hart| hart.stop_at_regions(stop));
    }

    /// Lets runs end when a hart's exceptions repeat themselves without end.
    pub fn stop_when_stuck(&mut self, stop: bool) {
        self.harts.iter_mut().for_each(|hart| hart.stop_when_stuck(stop));
    }

    /// Returns all harts, for a run of them.
    pub(crate) fn all(&mut self) -> Vec<&mut Hart> {
        self.harts.iter_mut().collect()
    }
}

impl<'a> IntoIterator for &'a Harts {
    type Item = &'a Hart;
    type IntoIter = std::slice::Iter<'a, Hart>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Harts {
    type Item = &'a mut Hart;
    type IntoIter = std::slice::IterMut<'a, Hart>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

/// Sets what of its code is translated, and whether by a thread of its own; a host that cannot is told of only if it has to.
fn translate(hart: &mut Hart, translator: Translator, apart: bool) -> Result<(), SimulationError> {
    match (hart.set_translate(translator.into()), translator) {
        (Err(e), Translator::Eager) => Err(SimulationError::Options(format!("translator: {e}"))),
        (Err(e), _) => {
            tracing::info!("translator: {e}");
            Ok(())
        }
        (Ok(()), _) => {
            if apart {
                hart.translate_apart();
            }
            Ok(())
        }
    }
}
