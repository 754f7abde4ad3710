//! The largest disagreements, in sentences: time that a profiler charges to one instruction although, in the sampled
//! cycles, the Oracle charged another ([`profile::Misplaced`]).

use profile::{Component, Evaluation, Misplaced, Profiler};
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::Column;
use super::gather::Rows;
use super::rows::RowBuilder;

/// Disagreements per process and profiler.
const MAX_DISAGREEMENTS: usize = 12;
/// Least share of the profiler's time in the process for a disagreement to be reported.
const NOTICEABLE: f64 = 0.001;

/// Time that a profiler charged to another instruction than the Oracle did.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Disagreement {
    /// Index into [`crate::Common::processes`].
    pub process: usize,
    /// Index into [`crate::Common::columns`].
    pub column: usize,
    /// The instruction that the profiler named.
    pub named: Named,
    /// The instruction that the Oracle charged.
    pub truth: Named,
    /// The part of the cycle stack for which the Oracle charged `truth`.
    pub component: Component,
    /// Share of the profiler's time in this process.
    pub share: f64,
    /// The sentence.
    pub words: String,
}

/// An instruction, as sentences show it.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Named {
    /// Address, in hexadecimal.
    pub pc: String,
    /// Function that the instruction is in, with the distance from its start.
    pub label: String,
    /// Disassembly.
    pub text: String,
}

/// The disagreements of the process at `at` among the gathered, for the first sampler of each profiler; the largest first.
pub(super) fn disagreements(
    evaluation: &Evaluation,
    at: usize,
    rows: &Rows,
    columns: &[Column],
    builder: &mut RowBuilder<'_>,
) -> Vec<Disagreement> {
    let mut out = Vec::new();
    let samplers = evaluation.samplers.iter().enumerate();
    for (index, result) in samplers.filter(|(index, _)| columns[*index].primary) {
        let total = rows.columns[index].totals.total.max(1) as f64;
        let own = result.misplaced.iter().filter(|m| m.process == rows.process);
        let noticeable = |m: &&Misplaced| m.units as f64 / total >= NOTICEABLE;
        for misplaced in own.take(MAX_DISAGREEMENTS).filter(noticeable) {
            let mut find = |inst| {
                let row = rows.insts.binary_search(&inst).ok()?;
                let made = builder.instruction(rows, at, row);
                Some(Named { pc: made.pc, label: made.label, text: made.text.replace('\t', " ") })
            };
            let (Some(named), Some(truth)) = (find(misplaced.named), find(misplaced.truth)) else {
                continue;
            };
            let share = misplaced.units as f64 / total;
            out.push(Disagreement {
                process: at + 1,
                column: index,
                words: words(columns[index].label(), &named, &truth, misplaced.component, share),
                named,
                truth,
                component: misplaced.component,
                share,
            });
        }
    }
    out.sort_by(|a, b| b.share.total_cmp(&a.share));
    out
}

fn words(profiler: &str, named: &Named, truth: &Named, component: Component, share: f64) -> String {
    let place = |inst: &Named| format!("`{}` ({})", inst.text, inst.label);
    format!(
        "{} charges {} for {} {}: {:.1} % of its time",
        title(profiler),
        place(named),
        cause(component),
        place(truth),
        100.0 * share
    )
}

/// A profiler's name at the start of a sentence.
pub(super) fn title(profiler: &str) -> String {
    let known = Profiler::of_name(profiler);
    known.map_or_else(|| profiler.to_uppercase(), |known| known.title().to_owned())
}

/// The words for what the Oracle charges, which precede the instruction.
const fn cause(component: Component) -> &'static str {
    match component {
        Component::Execution => "the commit of",
        Component::Alu => "the wait for operands or a unit of",
        Component::LoadL1 => "the wait for data (L1) of",
        Component::LoadTlb => "the data TLB miss of",
        Component::LoadL2 => "the wait for data (L2) of",
        Component::LoadLlc => "the wait for data (LLC) of",
        Component::LoadDram => "the wait for data (DRAM) of",
        Component::LoadPeer => "the wait for data (of another hart) of",
        Component::Store => "the wait for a store's address or data of",
        Component::Divider => "the division of",
        Component::Serialize => "the serialisation of",
        Component::Device => "the device access of",
        Component::FrontEnd => "the drained ROB before",
        Component::FrontEndCache => "the I-cache miss before",
        Component::FrontEndTlb => "the ITLB miss before",
        Component::FrontEndStores => "the full store queue before",
        Component::Mispredict => "the misprediction of",
        Component::Flush => "the flush of",
        Component::MemoryOrdering => "the memory-ordering replay of",
        Component::Exception => "the exception of",
        Component::Interrupt => "the interrupt taken at",
    }
}
