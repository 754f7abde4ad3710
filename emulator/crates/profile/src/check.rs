//! Whether an evaluation that comes from a file holds together: whoever reads one takes its numbers as indices, adds them up
//! and divides by them. What the guest says (names, mappings, where its kernel lies) can be anything, in a file or not, and is
//! not checked.

use std::ops::Range;

use commit_trace::{MAX_COMMIT_WIDTH, TeaEvents};

use crate::packed::Packed;
use crate::stacks::COMPONENT_BITS;
use crate::subsample::SUBSAMPLES;
use crate::topdown::{SLOT_BITS, Slot};
use crate::waits::Transition;
use crate::{
    Component, ContextId, ContextWeights, Evaluation, ProcessId, Profile, SamplerResult, ThreadId,
    UNITS_PER_CYCLE,
};

/// Cycles that no stream reaches, as `commit_trace` refuses longer ones. The units and slots of this many cycles, on as many harts as there
/// can be, add up to less than 64 bits hold.
const MOST_CYCLES: u64 = commit_trace::MAX_CYCLE;
const MOST_UNITS: u64 = MOST_CYCLES * UNITS_PER_CYCLE;

/// The result of a check; the error says what does not hold together, and where.
type Checked = Result<(), String>;

/// Returns an error unless `holds` is true.
fn expect(holds: bool, error: impl FnOnce() -> String) -> Checked {
    match holds {
        true => Ok(()),
        false => Err(error()),
    }
}

/// The number of each kind of entity that other parts of an evaluation refer to by number.
struct EntityCounts {
    processes: usize,
    threads: usize,
    instructions: usize,
    contexts: usize,
}

impl EntityCounts {
    fn process(&self, field: &str, process: ProcessId) -> Checked {
        below(field, "a process", process.0.into(), self.processes)
    }

    fn thread(&self, field: &str, thread: ThreadId) -> Checked {
        match thread {
            ThreadId::NONE => Ok(()),
            _ => below(field, "a thread", thread.0.into(), self.threads),
        }
    }

    fn inst(&self, field: &str, inst: u64) -> Checked {
        below(field, "an instruction", inst, self.instructions)
    }

    fn context(&self, field: &str, context: ContextId) -> Checked {
        below(field, "a context", context.0.into(), self.contexts)
    }

    /// Checks amounts per instruction, and returns their sum. The `low_bits` of their numbers must be below `low_values`.
    fn packed(
        &self,
        field: &str,
        packed: &Packed,
        low_bits: u32,
        low_values: usize,
    ) -> Result<u64, String> {
        let mut sum = 0u64;
        for (number, amount) in packed.iter() {
            self.inst(field, number >> low_bits)?;
            let low = number & ((1 << low_bits) - 1);
            below(field, "a kind", low, low_values)?;
            sum = added(field, sum, amount)?;
        }
        Ok(sum)
    }

    /// Checks amounts per instruction of several processes, each as [`Self::packed`] does, and returns their sum.
    fn by_process(
        &self,
        field: &str,
        by_process: &[Packed],
        low_bits: u32,
        low_values: usize,
    ) -> Result<u64, String> {
        let processes = self.processes;
        expect(by_process.len() <= processes, || {
            let found = by_process.len();
            format!("{field}: expected at most {processes} processes, found {found}")
        })?;
        by_process.iter().try_fold(0, |sum, packed| {
            added(field, sum, self.packed(field, packed, low_bits, low_values)?)
        })
    }

    /// Returns the sum of a profile.
    fn profile(&self, field: &str, profile: &Profile) -> Result<u64, String> {
        let units = profile.units_per_cycle();
        expect(units == UNITS_PER_CYCLE, || {
            format!("{field}: expected {UNITS_PER_CYCLE} units per cycle, found {units}")
        })?;
        let by_process: Vec<_> = profile.packed().collect();
        let last = by_process.len().saturating_sub(1);
        below(field, "a process", last as u64, self.processes.max(1))?;
        by_process
            .iter()
            .try_fold(0, |sum, packed| added(field, sum, self.packed(field, packed, 0, 1)?))
    }

    fn weights(&self, field: &str, weights: &ContextWeights) -> Checked {
        let mut sum = 0;
        for (context, inst, units) in weights {
            self.context(field, *context)?;
            self.inst(field, inst.0.into())?;
            sum = added(field, sum, *units)?;
        }
        Ok(())
    }
}

fn below(field: &str, what: &str, found: u64, limit: usize) -> Checked {
    expect(found < limit as u64, || {
        format!("{field}: expected a number of {what} below {limit}, found {found}")
    })
}

fn added(field: &str, sum: u64, more: u64) -> Result<u64, String> {
    let sum = sum.checked_add(more).filter(|sum| *sum <= MOST_UNITS);
    sum.ok_or_else(|| format!("{field}: more than any run has"))
}

/// Checks that a stretch of cycles comes no earlier than `after`, and returns its end.
fn stretch(field: &str, range: Range<u64>, after: u64) -> Result<u64, String> {
    let Range { start, end } = range;
    expect(after <= start && start <= end && end <= MOST_CYCLES, || {
        format!("{field}: expected ascending stretches of cycles, found {start} to {end}")
    })?;
    Ok(end)
}

impl Evaluation {
    /// Checks that the evaluation holds together. Whoever reads an evaluation from a file calls this first; then no
    /// report, export or comparison can fail on it.
    ///
    /// # Errors
    /// The field, what was expected of it and what was found.
    pub fn check(&self) -> Result<(), String> {
        let known = EntityCounts {
            processes: self.processes.len(),
            threads: self.threads.len(),
            instructions: self.static_info.len(),
            contexts: self.contexts.as_ref().map_or(0, |contexts| contexts.len()),
        };
        self.check_totals()?;
        self.check_lists(&known)?;
        self.check_weights(&known)?;
        self.check_over_time(&known)?;
        self.check_scripts(&known)?;
        let samplers = self.samplers.iter();
        { samplers }.try_for_each(|result| result.check(&known))
    }

    fn check_totals(&self) -> Checked {
        for (field, found) in [
            ("cycles", self.cycles),
            ("instructions", self.instructions),
            ("traps", self.traps),
            ("stream_cycles", self.stream_cycles),
            ("malformed_side_band", self.malformed_side_band),
        ] {
            expect(found <= MOST_CYCLES, || {
                format!("{field}: expected at most {MOST_CYCLES}, found {found}")
            })?;
        }
        let (idle, cycles) = (self.idle, self.cycles);
        expect(idle <= cycles, || format!("idle: expected at most {cycles} cycles, found {idle}"))?;
        Ok(())
    }

    /// Checks that processes, threads and instructions are at the places of their numbers, and that what address spaces and
    /// calling contexts refer to is known.
    fn check_lists(&self, known: &EntityCounts) -> Checked {
        let ids = self.processes.iter().map(|process| process.id.0);
        expect(ids.eq(0..known.processes as u32), || {
            "processes: expected them in the order of their numbers".into()
        })?;
        let ids = self.threads.iter().map(|thread| thread.id.0);
        expect(ids.eq(0..known.threads as u32), || {
            "threads: expected them in the order of their numbers".into()
        })?;
        let mut ran = 0;
        for thread in &self.threads {
            known.process("threads", thread.process)?;
            ran = added("threads", ran, thread.cycles)?;
        }
        let ids = self.static_info.iter().map(|info| info.id.0);
        expect(ids.eq(0..known.instructions as u32), || {
            "static_info: expected instructions in the order of their numbers".into()
        })?;
        let (expected, found) = (known.instructions, self.first_use.len());
        expect(found == expected, || {
            format!("first_use: expected {expected} instructions, found {found}")
        })?;
        for process in self.spaces.values() {
            known.process("spaces", *process)?;
        }
        for (number, context) in self.contexts.iter().flat_map(|all| all.iter()).enumerate() {
            known.process("contexts", context.process)?;
            known.thread("contexts", context.thread)?;
            if let Some((caller, inst)) = context.caller {
                // A caller comes first, which is why they end.
                below("contexts", "a caller", caller.0.into(), number)?;
                known.inst("contexts", inst.0.into())?;
            }
        }
        Ok(())
    }

    fn check_weights(&self, known: &EntityCounts) -> Checked {
        let total = known.profile("oracle", &self.oracle)?;
        let expected = (self.cycles - self.idle) * UNITS_PER_CYCLE;
        expect(total == expected, || format!("oracle: expected {expected} units, found {total}"))?;
        let stacks = &self.stacks.by_process;
        known.by_process("stacks", stacks, COMPONENT_BITS, Component::COUNT)?;
        let spinning = &self.spinning.by_process;
        known.by_process("spinning", spinning, COMPONENT_BITS, Component::COUNT)?;
        let shared = self
            .shared
            .iter()
            .try_fold(0, |sum, shared| added("shared", sum, known.profile("shared", shared)?))?;
        expect(shared <= total, || {
            format!("shared: expected at most {total} units, found {shared}")
        })?;
        self.check_subsamples(known)?;
        known.weights("by_context", &self.by_context)?;
        if let Some(marked) = &self.marked {
            known.profile("marked", marked)?;
        }
        for part in self.by_thread.values() {
            known.profile("by_thread", &part.whole)?;
            known.profile("by_thread", &part.marked)?;
        }
        if let Some(signatures) = &self.signatures {
            let signatures = &signatures.by_process;
            known.by_process("signatures", signatures, TeaEvents::BITS, 1 << TeaEvents::BITS)?;
        }
        Ok(())
    }

    fn check_subsamples(&self, known: &EntityCounts) -> Checked {
        const FIELD: &str = "subsamples";
        let found = self.subsamples.len();
        expect(found <= SUBSAMPLES, || {
            format!("{FIELD}: expected at most {SUBSAMPLES}, found {found}")
        })?;
        let mut sums = [0; 4];
        for subsample in &self.subsamples {
            let stacks = &subsample.stacks.by_process;
            let units = known.by_process(FIELD, stacks, COMPONENT_BITS, Component::COUNT)?;
            ascending(FIELD, subsample.slots.keys().copied(), known)?;
            let mut slots = subsample.slots.values().flat_map(|slots| slots.0);
            let slots = slots.try_fold(0, |sum, more| added(FIELD, sum, more))?;
            let amounts = [units, subsample.instructions, subsample.units, slots];
            for (sum, amount) in sums.iter_mut().zip(amounts) {
                *sum = added(FIELD, *sum, amount)?;
            }
        }
        Ok(())
    }

    fn check_scripts(&self, known: &EntityCounts) -> Checked {
        const FIELD: &str = "scripts";
        let functions = self.scripts.functions.len();
        let processes = self.scripts.processes.iter().map(|of| of.process);
        ascending(FIELD, processes, known)?;
        let in_order = || format!("{FIELD}: expected each function and line once, in order");
        for process in &self.scripts.processes {
            let numbers = || process.functions.iter().map(|time| time.function);
            let places = process.lines.iter().map(|time| (time.function, time.line));
            expect(numbers().is_sorted_by(|a, b| a < b), in_order)?;
            expect(places.is_sorted_by(|a, b| a < b), in_order)?;
            for function in numbers().chain(process.lines.iter().map(|time| time.function)) {
                below(FIELD, "a function", function.into(), functions)?;
            }
            let functions = process.functions.iter().flat_map(|time| [time.own, time.total]);
            let lines = process.lines.iter().map(|time| time.own);
            for sum in functions.chain(lines).chain([process.whole]) {
                let possible = |amount: f64| amount.is_finite() && amount >= 0.0;
                let holds = possible(sum.cycles) && possible(sum.squares);
                expect(holds && sum.samples <= MOST_CYCLES, || {
                    format!("{FIELD}: expected amounts from 0 up, found {sum:?}")
                })?;
            }
        }
        Ok(())
    }

    fn check_over_time(&self, known: &EntityCounts) -> Checked {
        if let Some(top_down) = &self.top_down {
            let width = top_down.width;
            expect((1..=MAX_COMMIT_WIDTH as u32).contains(&width), || {
                format!("top_down.width: expected 1 to {MAX_COMMIT_WIDTH}, found {width}")
            })?;
            known.by_process("top_down", &top_down.by_process, SLOT_BITS, Slot::ALL.len())?;
            let (mut after, mut sum) = (0, 0);
            for window in &top_down.windows {
                const FIELD: &str = "top_down.windows";
                after = stretch(FIELD, window.start..window.end, after)?;
                sum = added(FIELD, sum, window.cycles)?;
                let processes = window.processes.iter().map(|(process, _)| *process);
                ascending(FIELD, processes, known)?;
                for (_, spent) in &window.processes {
                    let amounts = spent.slots.0.iter().chain(&spent.cycles);
                    sum = { amounts }.try_fold(sum, |sum, more| added(FIELD, sum, *more))?;
                }
            }
        }
        let (mut after, mut sum) = (0, 0);
        for bin in &self.over_time {
            const FIELD: &str = "over_time";
            after = stretch(FIELD, bin.start..bin.end, after)?;
            ascending(FIELD, bin.processes.iter().map(|time| time.process), known)?;
            for time in &bin.processes {
                sum = added(FIELD, sum, known.packed(FIELD, &time.weights, 0, 1)?)?;
                sum = added(FIELD, sum, time.others)?;
                let mut by_context = 0;
                for (context, inst, units) in time.by_context() {
                    known.context(FIELD, context)?;
                    known.inst(FIELD, inst.0.into())?;
                    by_context = added(FIELD, by_context, units)?;
                }
                added(FIELD, by_context, time.other_contexts)?;
            }
        }
        let mut after = 0;
        for range in &self.scheduler.region {
            after = stretch("scheduler.region", range.clone(), after)?;
        }
        for event in &self.scheduler.events {
            if let Transition::Runs(_, thread) = event.change {
                known.thread("scheduler.events", thread)?;
            }
            if let Some(entry) = event.entry {
                known.context("scheduler.events", entry)?;
            }
        }
        Ok(())
    }
}

/// Checks that processes are known, and ascend by number.
fn ascending(
    field: &str,
    processes: impl Iterator<Item = ProcessId> + Clone,
    known: &EntityCounts,
) -> Checked {
    processes.clone().try_for_each(|process| known.process(field, process))?;
    expect(processes.is_sorted_by(|one, next| one < next), || {
        format!("{field}: expected processes in the order of their numbers")
    })
}

impl SamplerResult {
    fn check(&self, known: &EntityCounts) -> Checked {
        let field = format!("sampler {}", self.sampler.name);
        let field = field.as_str();
        expect(self.sampler.schedule.period > 0, || {
            format!("{field}: expected a period of at least 1, found 0")
        })?;
        let total = known.profile(field, &self.profile)?;
        let found = self.subsamples.len();
        expect(found <= SUBSAMPLES, || {
            format!("{field}: expected at most {SUBSAMPLES} subsamples, found {found}")
        })?;
        let mut subsamples = self.subsamples.iter();
        let sum = subsamples.try_fold(0, |sum, of| added(field, sum, known.profile(field, of)?))?;
        expect(found == 0 || sum == total, || {
            format!("{field}: expected subsamples of {total} units in all, found {sum}")
        })?;
        for process in self.processes.iter().flatten() {
            known.process(field, *process)?;
        }
        for found in [self.samples, self.dropped, self.tail_cycles] {
            expect(found <= MOST_CYCLES, || {
                format!("{field}: expected at most {MOST_CYCLES}, found {found}")
            })?;
        }
        if let Some(signatures) = &self.signatures {
            let signatures = &signatures.by_process;
            known.by_process(field, signatures, TeaEvents::BITS, 1 << TeaEvents::BITS)?;
        }
        let mut sum = 0;
        for misplaced in &self.misplaced {
            known.process(field, misplaced.process)?;
            known.inst(field, misplaced.named.0.into())?;
            known.inst(field, misplaced.truth.0.into())?;
            sum = added(field, sum, misplaced.units)?;
        }
        known.weights(field, &self.by_context)?;
        let mut sum = 0;
        for sample in &self.log {
            known.process(field, sample.process)?;
            known.inst(field, sample.inst.0.into())?;
            sum = added(field, sum, sample.units)?;
        }
        Ok(())
    }
}
