//! The tree by callers.

use std::collections::{BTreeMap, HashMap};

use commit_trace::InstId;
use profile::{Context, ContextId, Contexts, Evaluation, ProcessId, Thread, ThreadId};
use rustc_hash::FxHashMap;

use super::{FlameBuilder, FrameKind, LEAST_PART, Placed, Tree};
use crate::gather::Rows;

/// Nodes of places in the code, by the node of their caller and by [`Rows::places`].
type Leaves = FxHashMap<(u32, u32), u32>;

/// The calling contexts, and the context that each is shown as.
pub(super) struct Folded<'a> {
    contexts: &'a Contexts,
    shown: Vec<ContextId>,
    /// Contexts by process.
    of: HashMap<ProcessId, Vec<ContextId>>,
    /// Node of each context; 0 until it has one.
    nodes: Vec<u32>,
}

impl<'a> Folded<'a> {
    /// Returns the calling contexts of an evaluation, if it has any.
    pub(super) fn of(evaluation: &'a Evaluation) -> Option<Self> {
        let contexts = evaluation.contexts.as_ref()?;
        let weights = evaluation.samplers.iter().map(|result| &result.by_context);
        let weights = std::iter::once(&evaluation.by_context).chain(weights);
        let mut of: HashMap<ProcessId, Vec<ContextId>> = HashMap::new();
        for id in (0..contexts.len() as u32).map(ContextId) {
            of.entry(contexts.get(id).process).or_default().push(id);
        }
        Some(Self {
            contexts,
            shown: contexts.shown(weights, LEAST_PART),
            of,
            nodes: vec![0; contexts.len()],
        })
    }
}

impl<'a> FlameBuilder<'a> {
    /// Adds a process by its calling contexts.
    pub(super) fn add_contexts(
        &mut self,
        name: u32,
        rows: &Rows,
        folded: &mut Folded<'a>,
        scales: &[f64],
        placed: &mut Placed,
    ) {
        let mut tree = std::mem::take(&mut self.callers);
        let process = tree.child(0, FrameKind::Process, name, 0);
        let own = folded.of.get(&rows.process).cloned().unwrap_or_default();
        for id in own {
            let Context { thread, caller, .. } = folded.contexts.get(id);
            folded.nodes[id.0 as usize] = match caller {
                Some((caller, call)) => {
                    let own = folded.contexts.get(caller).process == rows.process;
                    let above = match folded.nodes[folded.shown[caller.0 as usize].0 as usize] {
                        above @ 1.. if own => above,
                        _ => process,
                    };
                    match rows.insts.binary_search(&call) {
                        Ok(row) if folded.shown[id.0 as usize] == id => {
                            let at = &self.symbols.locations[rows.places[row] as usize];
                            self.frames(&mut tree, above, at)
                        }
                        _ => above,
                    }
                }
                None => self.thread(&mut tree, process, rows.process, thread),
            };
        }
        let whole = |row: usize| (rows.oracle[row] as f64).max(1.0);
        let evaluation = self.evaluation;
        let mut leaves = Leaves::default();
        let weights = evaluation.by_context.iter().copied();
        let oracle = self.charged(&mut tree, rows, folded, &mut leaves, weights);
        for (node, row, units) in oracle {
            tree.add(node, &rows.parts(row).scaled(units as f64 / whole(row)));
        }
        for (at, scale) in scales.iter().enumerate() {
            // Profiles of the guest have no contexts.
            let Some(result) = evaluation.samplers.get(self.columns[at]) else {
                continue;
            };
            let weights = result.by_context.iter().copied();
            for (node, _, units) in self.charged(&mut tree, rows, folded, &mut leaves, weights) {
                tree.add_column(node, at, units as f64 * scale);
            }
        }
        placed.caller_process = process;
        for bin in &evaluation.over_time {
            let time = bin.of(rows.process);
            let weights = time.into_iter().flat_map(|time| time.by_context());
            let mut own: BTreeMap<u32, u64> = BTreeMap::new();
            for (node, _, units) in self.charged(&mut tree, rows, folded, &mut leaves, weights) {
                *own.entry(node).or_default() += units;
            }
            placed.callers.push(own.into_iter().collect());
        }
        self.callers = tree;
    }

    /// Returns those of `weights` that are of the process of `rows`: node, row, units.
    fn charged(
        &mut self,
        tree: &mut Tree,
        rows: &Rows,
        folded: &Folded<'_>,
        leaves: &mut Leaves,
        weights: impl Iterator<Item = (ContextId, InstId, u64)>,
    ) -> Vec<(u32, usize, u64)> {
        let mut out = Vec::new();
        for (context, inst, units) in weights {
            let Some(shown) = folded.shown.get(context.0 as usize) else {
                continue;
            };
            if folded.contexts.get(context).process != rows.process {
                continue;
            }
            let (above, row) = (folded.nodes[shown.0 as usize], rows.insts.binary_search(&inst));
            if let (1.., Ok(row)) = (above, row) {
                let place = rows.places[row];
                let leaf = leaves.entry((above, place));
                let at = &self.symbols.locations[place as usize];
                let leaf = *leaf.or_insert_with(|| self.frames(tree, above, at));
                out.push((leaf, row, units));
            }
        }
        out
    }

    /// Returns the node of a thread if its name is not that of its process; `node` otherwise.
    fn thread(&mut self, tree: &mut Tree, node: u32, process: ProcessId, thread: ThreadId) -> u32 {
        let thread = self.evaluation.threads.get(thread.0 as usize);
        let process = self.evaluation.processes.get(process.0 as usize);
        let (thread, process) = (thread.map(Thread::name), process.map(|process| &*process.name));
        match thread.filter(|name| !name.is_empty() && Some(*name) != process) {
            Some(name) => {
                let name = self.name(name);
                tree.child(node, FrameKind::Thread, name, 0)
            }
            None => node,
        }
    }
}
