//! The top-down tree of processes, functions and time.

pub(crate) mod rules;
pub(crate) mod text;

use std::collections::BTreeMap;

use profile::topdown::{NODES, Node, Slots, SlotsAndCycles};
use profile::{Evaluation, Margin, ProcessId, Subsample};
use schemars::JsonSchema;
use serde::Serialize;

use super::gather::{Gathered, Summary};
use super::margins::SubsampleTotals;
use super::rows::Function;

/// Functions that have a row at most: those with most slots.
const MAX_FUNCTIONS: usize = 200;

/// Where the commit slots went: see [`profile::topdown`].
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TopDownReport {
    /// Slots per cycle: the commit width.
    pub width: u32,
    /// The tree, parents before their children.
    pub nodes: Vec<Node>,
    /// Slots of processes, in the order of [`crate::Common::processes`].
    pub processes: Vec<TopDownRow>,
    /// The functions with most slots.
    pub functions: Vec<TopDownRow>,
    /// Slots and cycles over time.
    pub windows: Vec<TopDownWindow>,
}

/// The slots of a process or function.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TopDownRow {
    /// Index into [`crate::Common::processes`].
    pub process: usize,
    /// Name of the process or function.
    pub name: String,
    /// Slots: the width times the cycles.
    pub slots: u64,
    /// Share of these slots by the path of each node that has any.
    pub shares: BTreeMap<&'static str, f64>,
    /// Margins of these shares, by the path of the node, if the region was sampled; only processes have any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub margins: BTreeMap<&'static str, Margin>,
    /// Nodes over their threshold whose parents are over theirs: the ones that the method drills down into.
    pub closer: Vec<&'static str>,
}

/// A stretch of time.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TopDownWindow {
    /// The first cycle of the stretch.
    pub start: u64,
    /// The first cycle after the stretch.
    pub end: u64,
    /// Profiled cycles in the stretch.
    pub cycles: u64,
    /// Shares of the stretch's slots by node of the tree, in the order of [`TopDownReport::nodes`], for each process that ran
    /// and for all (index 0).
    pub processes: BTreeMap<usize, Vec<f64>>,
    /// Shares of the stretch's cycles by category of the cycle stacks, in the order of [`profile::Category::ALL`], for each
    /// process that ran and for all (index 0).
    pub stacks: BTreeMap<usize, [f64; 7]>,
}

pub(super) fn top_down(
    evaluation: &Evaluation,
    gathered: &Gathered<'_>,
    names: &[String],
    functions: &[Function],
) -> Option<TopDownReport> {
    let slots = evaluation.top_down.as_ref()?;
    let mut whole = Slots::default();
    let mut processes = Vec::new();
    for (index, summary) in gathered.processes.iter().enumerate() {
        let mut sum = Slots::default();
        for (_, slot, count) in slots.of(summary.process) {
            sum[slot] += count;
        }
        whole += sum;
        let by_subsample = by_subsample(evaluation, |of| {
            of.slots.get(&summary.process).copied().unwrap_or_default()
        });
        let margins = margins(&gathered.subsample_totals, &by_subsample);
        processes.push(TopDownRow { margins, ..row(index + 1, &names[index], &sum) });
    }
    let by_subsample = by_subsample(evaluation, |of| {
        let mut all = Slots::default();
        of.slots.values().for_each(|slots| all += *slots);
        all
    });
    let of_all = margins(&gathered.subsample_totals, &by_subsample);
    processes.insert(0, TopDownRow { margins: of_all, ..row(0, "all", &whole) });
    let mut functions: Vec<TopDownRow> = functions
        .iter()
        .filter(|f| f.slots != Slots::default())
        .map(|f| row(f.process + 1, &f.row.name, &f.slots))
        .collect();
    functions.sort_by_key(|row| std::cmp::Reverse(row.slots));
    functions.truncate(MAX_FUNCTIONS);
    let numbered = |(index, summary): (usize, &Summary)| (summary.process, index + 1);
    let index: BTreeMap<ProcessId, usize> =
        gathered.processes.iter().enumerate().map(numbered).collect();
    let windows = slots.windows.iter().map(|window| {
        let mut all = SlotsAndCycles::default();
        window.processes.iter().for_each(|(_, spent)| all += *spent);
        let shown = window
            .processes
            .iter()
            .filter_map(|(process, spent)| Some((*index.get(process)?, spent)));
        let shown = shown.chain([(0, &all)]);
        let nodes = |spent: &SlotsAndCycles| {
            let share = |node: &Node| share(node.of(&spent.slots), all.slots.total());
            NODES.iter().map(share).collect()
        };
        let stack =
            |spent: &SlotsAndCycles| spent.cycles.map(|cycles| share(cycles, window.cycles));
        TopDownWindow {
            start: window.start,
            end: window.end,
            cycles: window.cycles,
            processes: shown.clone().map(|(at, spent)| (at, nodes(spent))).collect(),
            stacks: shown.map(|(at, spent)| (at, stack(spent))).collect(),
        }
    });
    Some(TopDownReport {
        width: slots.width,
        nodes: NODES.to_vec(),
        processes,
        functions,
        windows: windows.collect(),
    })
}

/// Returns the slots that each subsample of a sampled region has.
fn by_subsample(evaluation: &Evaluation, of: impl FnMut(&Subsample) -> Slots) -> Vec<Slots> {
    evaluation.subsamples.iter().map(of).collect()
}

/// Returns the margins of the share of each node that has any slots.
fn margins(subsamples: &SubsampleTotals, by_subsample: &[Slots]) -> BTreeMap<&'static str, Margin> {
    let whole: Vec<u64> = by_subsample.iter().map(Slots::total).collect();
    let margin = |node: &Node| {
        let part: Vec<u64> = by_subsample.iter().map(|slots| node.of(slots)).collect();
        let has_any = part.iter().any(|slots| *slots > 0);
        let margin = has_any.then(|| subsamples.margin_of_share(&part, &whole));
        Some((node.path, margin??))
    };
    NODES.iter().filter_map(margin).collect()
}

fn row(process: usize, name: &str, slots: &Slots) -> TopDownRow {
    let total = slots.total();
    let mut closer: Vec<&'static str> = Vec::new();
    for node in &NODES {
        let over = node.threshold.is_some_and(|limit| share(node.of(slots), total) > limit);
        if over && node.parent().is_none_or(|parent| closer.contains(&parent)) {
            closer.push(node.path);
        }
    }
    let shares = NODES.iter().map(|node| (node.path, share(node.of(slots), total)));
    TopDownRow {
        process,
        name: name.to_owned(),
        slots: total,
        shares: shares.filter(|(_, share)| *share > 0.0).collect(),
        margins: BTreeMap::new(),
        closer,
    }
}

fn share(part: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { part as f64 / total as f64 }
}
