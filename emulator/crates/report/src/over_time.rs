//! The Oracle over time, by what the page shows: functions, nodes of the flame graph, and the instructions of its tables.

use commit_trace::InstId;
use profile::Evaluation;
use rustc_hash::{FxHashMap, FxHashSet};
use symbols::FunctionId;

use super::flame::Placed;
use super::gather::Gathered;
use super::rows::Function;
use super::tables::{InstructionRow, Listing};

/// The Oracle in bins of time. Only the page has it.
#[derive(Clone, Debug, Default)]
pub struct OverTime {
    /// First cycle of each bin, and the first cycle after the bin.
    pub bins: Vec<(u64, u64)>,
    /// Items that are told apart in a bin.
    pub items: Vec<TimedItem>,
    /// By bin, the items with any time (indices into `items`, ascending) and their cycles.
    pub cycles: Vec<Vec<(u32, u64)>>,
    /// By bin, the nodes of [`super::Flame::callers`] (indices plus one) with time of their own, and their cycles. Time of
    /// contexts that are not kept apart is the own time of the process's node. Empty without calling contexts.
    pub callers: Vec<Vec<(u32, u64)>>,
    /// By bin, the cycles of `callers` that are not kept apart by context, by index into [`crate::Common::processes`].
    pub other_callers: Vec<Vec<(u32, u64)>>,
    /// Items of single instructions, by process (an index into [`crate::Common::processes`]) and instruction.
    instructions: FxHashMap<(usize, InstId), u32>,
}

/// An item of a bin: an instruction that some table has, or all others of a function in a node of the flame graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimedItem {
    /// Index into [`crate::Common::processes`].
    pub process: usize,
    /// Index into [`super::Flame::lines`] plus one; 0 if the process has no node.
    pub node: u32,
    /// Index into [`crate::Common::functions`]; `None` if the function is not listed.
    pub function: Option<usize>,
}

impl OverTime {
    /// Returns the item of an instruction of a process.
    pub(super) fn item(&self, row: &InstructionRow) -> Option<u32> {
        self.instructions.get(&(row.process, row.inst)).copied()
    }

    /// Sums the Oracle's time by bin and item for everything that `gathered` names; `placed` has the nodes of each process.
    pub(super) fn new(
        evaluation: &Evaluation,
        gathered: &Gathered<'_>,
        placed: &[Placed],
        functions: &[Function],
        shown: &FxHashSet<(usize, InstId)>,
    ) -> Self {
        let bins = &evaluation.over_time;
        let mut out = Self {
            bins: bins.iter().map(|bin| (bin.start, bin.end)).collect(),
            cycles: vec![Vec::new(); bins.len()],
            ..Self::default()
        };
        if bins.is_empty() {
            return out;
        }
        let number = functions
            .iter()
            .enumerate()
            .map(|(index, function)| ((function.process, function.id), index));
        let number: FxHashMap<(usize, FunctionId), usize> = number.collect();
        let units = evaluation.oracle.units_per_cycle().max(1);
        let mut groups = FxHashMap::default();
        for (at, (summary, placed)) in gathered.processes.iter().zip(placed).enumerate() {
            let process = at + 1;
            let (insts, places) = gathered.places(at);
            let others = TimedItem { process, node: placed.process, function: None };
            let items: Vec<u32> = insts
                .iter()
                .zip(places)
                .zip(&placed.leaves)
                .map(|((inst, place), node)| {
                    let function = gathered.symbols.locations[*place as usize].function;
                    let item = TimedItem {
                        process,
                        node: *node,
                        function: number.get(&(at, function)).copied(),
                    };
                    if shown.contains(&(process, *inst)) {
                        out.instructions.insert((process, *inst), out.items.len() as u32);
                        return add(&mut out.items, item);
                    }
                    *groups.entry(item).or_insert_with(|| add(&mut out.items, item))
                })
                .collect();
            let mut rounding = Rounding::new(units);
            for (bin, cycles) in bins.iter().zip(&mut out.cycles) {
                let time = bin.of(summary.process);
                let Some(time) = time else { continue };
                let mut own: FxHashMap<u32, u64> = FxHashMap::default();
                for (inst, units) in time.weights() {
                    if let Ok(row) = insts.binary_search(&inst) {
                        *own.entry(items[row]).or_default() += units;
                    }
                }
                if time.others > 0 {
                    let item = groups.entry(others).or_insert_with(|| add(&mut out.items, others));
                    *own.entry(*item).or_default() += time.others;
                }
                cycles.extend(rounding.cycles(own));
            }
        }
        out.cycles.iter_mut().for_each(|cycles| cycles.sort_unstable());
        if evaluation.contexts.is_some() {
            out.add_callers(evaluation, gathered, placed, units);
        }
        out
    }

    fn add_callers(
        &mut self,
        evaluation: &Evaluation,
        gathered: &Gathered<'_>,
        placed: &[Placed],
        units: u64,
    ) {
        let bins = &evaluation.over_time;
        self.callers = vec![Vec::new(); bins.len()];
        self.other_callers = vec![Vec::new(); bins.len()];
        for (at, (summary, placed)) in gathered.processes.iter().zip(placed).enumerate() {
            let (mut rounding, mut rounding_others) = (Rounding::new(units), Rounding::new(units));
            for (number, (bin, nodes)) in bins.iter().zip(&placed.callers).enumerate() {
                let time = bin.of(summary.process);
                let others = time.map_or(0, |time| time.other_contexts);
                let mut own: FxHashMap<u32, u64> = FxHashMap::default();
                for (node, units) in nodes.iter().copied().chain([(placed.caller_process, others)])
                {
                    *own.entry(node).or_default() += units;
                }
                self.callers[number].extend(rounding.cycles(own));
                let others = [(at as u32 + 1, others)];
                self.other_callers[number].extend(rounding_others.cycles(others));
            }
        }
        self.callers.iter_mut().for_each(|nodes| nodes.sort_unstable());
    }
}

/// Rounds the units in bins to cycles, so that the sum over any range of bins is right to a cycle.
struct Rounding {
    units_per_cycle: u64,
    /// Units of each item so far, and the cycles that were made of them.
    sums: FxHashMap<u32, (u64, u64)>,
}

impl Rounding {
    fn new(units_per_cycle: u64) -> Self {
        let sums = FxHashMap::default();
        Self { units_per_cycle, sums }
    }

    /// Returns the cycles of the items in the next bin, to which each brings its `units`; items without any cycle are left out.
    fn cycles(
        &mut self,
        units: impl IntoIterator<Item = (u32, u64)>,
    ) -> impl Iterator<Item = (u32, u64)> {
        units.into_iter().filter_map(|(item, more)| {
            let (sum, told) = self.sums.entry(item).or_default();
            *sum += more;
            let whole = (*sum + self.units_per_cycle / 2) / self.units_per_cycle;
            let now = whole - std::mem::replace(told, whole);
            (now > 0).then_some((item, now))
        })
    }
}

fn add(items: &mut Vec<TimedItem>, item: TimedItem) -> u32 {
    items.push(item);
    items.len() as u32 - 1
}

/// Returns the instructions of the report's tables, with their processes.
pub(super) fn shown(
    instructions: &[InstructionRow],
    listings: &[Listing],
) -> FxHashSet<(usize, InstId)> {
    let listed = listings.iter().flat_map(|listing| &listing.rows);
    let listed = listed.map(|row| &row.instruction);
    instructions.iter().chain(listed).map(|row| (row.process, row.inst)).collect()
}
