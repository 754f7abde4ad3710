//! From excerpts to rows.

use std::collections::{BTreeMap, BTreeSet};

use commit_trace::InstId;
use critical_path::{Cause, Code, Excerpts, Graph, Iterations, Loop, Queue, find_loops};
use profile::{Evaluation, ProcessId};
use rustc_hash::FxHashMap;
use symbols::{FunctionId, Location, Symbolizer, Symbols, place};

use super::view::View;
use super::{CauseCycles, ChainLink, LeastCycles, LoopRow, LoopsReport};
use crate::model::Common;
use crate::rows::line;

/// Most loops that are listed.
const MAX_LOOPS: usize = 20;
/// Most loops that have pictures.
const MAX_VIEWED: usize = 5;
/// Least share that a listed loop has of its process's cycles, without the cycles of inner loops.
const NOTICEABLE: f64 = 0.01;
/// Least number of whole iterations that a listed loop has in excerpts.
const ENOUGH: usize = 3;
/// Least share that a named instruction has of an iteration's cycles.
const ON_CHAIN: f64 = 0.03;

pub(super) struct Builder<'a> {
    evaluation: &'a Evaluation,
    excerpts: &'a Excerpts,
    disassemble: &'a dyn Fn(u32, u64) -> String,
    code: Code<'a>,
    symbols: Symbols,
    /// Index into the symbols' locations of each instruction in excerpts.
    locations: FxHashMap<InstId, usize>,
    /// Number of each instruction's function. A function has a number of its own in each address space.
    functions: FxHashMap<InstId, u32>,
    /// The Oracle's cycles.
    cycles: FxHashMap<InstId, f64>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(
        evaluation: &'a Evaluation,
        excerpts: &'a Excerpts,
        symbolizer: &Symbolizer,
        disassemble: &'a dyn Fn(u32, u64) -> String,
    ) -> Self {
        let rows = excerpts.list.iter().flat_map(|excerpt| &excerpt.rows);
        let insts: BTreeSet<InstId> = rows.map(|row| row.inst).collect();
        let mut places = Vec::new();
        let mut locations = FxHashMap::default();
        for inst in insts {
            if let Some(info) = evaluation.static_info.get(inst.0 as usize) {
                let process = evaluation.spaces.get(&info.space).copied();
                locations.insert(inst, places.len());
                places.push(place::place(evaluation, process.unwrap_or(ProcessId(0)), info));
            }
        }
        let symbols = symbolizer.resolve(&places);
        let mut known: FxHashMap<(u32, FunctionId), u32> = FxHashMap::default();
        let number = |(inst, at): (&InstId, &usize)| {
            let space = evaluation.static_info[inst.0 as usize].space;
            let next = known.len() as u32;
            let function = symbols.locations[*at].function;
            (*inst, *known.entry((space, function)).or_insert(next))
        };
        let functions = locations.iter().map(number).collect();
        let units = evaluation.oracle.units_per_cycle().max(1) as f64;
        let mut cycles: FxHashMap<InstId, f64> = FxHashMap::default();
        for (_, inst, weight) in evaluation.oracle.iter() {
            if locations.contains_key(&inst) {
                *cycles.entry(inst).or_default() += weight as f64 / units;
            }
        }
        Self {
            code: Code::new(&evaluation.static_info),
            evaluation,
            excerpts,
            disassemble,
            symbols,
            locations,
            functions,
            cycles,
        }
    }

    pub(crate) fn build(&self, common: &Common) -> LoopsReport {
        let mut by_function: BTreeMap<u32, Vec<InstId>> = BTreeMap::new();
        for (inst, function) in &self.functions {
            by_function.entry(*function).or_default().push(*inst);
        }
        let found = find_loops(&self.code, self.excerpts, &by_function);
        let whole: Vec<f64> = found.iter().map(|it| self.sum(&it.body)).collect();
        let mut own = whole.clone();
        for (at, inner) in found.iter().enumerate() {
            if let Some(parent) = inner.parent {
                own[parent] -= whole[at];
            }
        }
        let process = |at: usize| self.process(common, &found[at]);
        let share = |cycles: f64, process: usize| {
            cycles / common.processes[process].cycles.max(f64::MIN_POSITIVE)
        };
        let mut order: Vec<usize> =
            (0..found.len()).filter(|&at| share(own[at], process(at)) >= NOTICEABLE).collect();
        order.sort_by(|&a, &b| own[b].total_cmp(&own[a]).then(a.cmp(&b)));
        let Excerpts { delays, list, .. } = self.excerpts;
        let graphs: Vec<Graph<'_>> =
            list.iter().map(|excerpt| Graph::new(&self.code, *delays, excerpt)).collect();
        let mut loops = Vec::new();
        for at in order {
            let iterations =
                Iterations::of(&found[at], &self.code, self.excerpts, &graphs, &|inst| {
                    self.functions.get(&inst).copied().unwrap_or(u32::MAX)
                });
            if iterations.list.len() < ENOUGH {
                continue;
            }
            let process = process(at);
            let mut row = self.row(&found[at], &iterations, whole[at]);
            row.chases_pointers = self.chases_pointers(&iterations, &graphs);
            row.process = process;
            row.share = share(whole[at], process);
            row.own_share = share(own[at], process);
            row.depth =
                std::iter::successors(found[at].parent, |&outer| found[outer].parent).count();
            if loops.len() < MAX_VIEWED {
                let picked = iterations.typical().unwrap_or_default();
                let view = |at: usize| {
                    let iteration = &iterations.list[at];
                    View::new(&graphs[iteration.excerpt], iteration, &|inst| {
                        (self.label(inst), self.text(inst))
                    })
                };
                row.views = picked.map(view).into();
            }
            loops.push(row);
            if loops.len() == MAX_LOOPS {
                break;
            }
        }
        let cycles = list.iter().map(|excerpt| excerpt.before(excerpt.rows.len()) - excerpt.from);
        LoopsReport {
            excerpts: list.len(),
            instructions: list.iter().map(|excerpt| excerpt.rows.len()).sum(),
            cycles: cycles.sum(),
            widths: self.excerpts.widths,
            loops,
        }
    }

    fn sum(&self, insts: &[InstId]) -> f64 {
        insts.iter().filter_map(|inst| self.cycles.get(inst)).sum()
    }

    /// Returns the loop's process, as an index into the report's processes.
    fn process(&self, common: &Common, found: &Loop) -> usize {
        let process =
            self.code.info(found.header).and_then(|info| self.evaluation.spaces.get(&info.space));
        process.and_then(|id| common.row_of(*id)).unwrap_or(0)
    }

    fn label(&self, inst: InstId) -> String {
        self.locations.get(&inst).map_or_else(String::new, |at| self.symbols.label(*at))
    }

    fn function(&self, inst: InstId) -> String {
        let at = self.locations.get(&inst).map(|at| self.symbols.locations[*at].function);
        at.map_or_else(String::new, |at| self.symbols.function(at).name.to_string())
    }

    fn text(&self, inst: InstId) -> String {
        let Some(info) = self.code.info(inst) else {
            return String::new();
        };
        let address =
            self.locations.get(&inst).map_or(info.pc, |at| self.symbols.locations[*at].offset);
        (self.disassemble)(info.raw, address).replace('\t', " ")
    }

    fn location(&self, inst: InstId) -> Option<&Location> {
        Some(&self.symbols.locations[*self.locations.get(&inst)?])
    }

    fn source(&self, inst: InstId) -> Option<String> {
        self.location(inst)?.program_line().map(line)
    }

    fn library_source(&self, inst: InstId) -> Option<String> {
        self.location(inst)?.library_line().map(line)
    }

    fn row(&self, found: &Loop, iterations: &Iterations, cycles: f64) -> LoopRow {
        let count = iterations.list.len() as f64;
        let per_iteration = |cycles: u64| cycles as f64 / count;
        let mean = per_iteration(iterations.cycles());
        let mut causes = BTreeMap::new();
        let mut links: BTreeMap<InstId, BTreeMap<_, u64>> = BTreeMap::new();
        for (&(inst, cause), &cycles) in &iterations.path {
            *causes.entry(cause).or_insert(0) += cycles;
            links.entry(inst).or_default().insert(cause, cycles);
        }
        let mut causes: Vec<CauseCycles> = causes
            .into_iter()
            .map(|(cause, cycles)| CauseCycles { cause, cycles: per_iteration(cycles) })
            .collect();
        causes.sort_by(|a, b| b.cycles.total_cmp(&a.cycles).then(a.cause.cmp(&b.cause)));
        let link = |(inst, causes): (InstId, BTreeMap<_, u64>)| {
            let (&cause, _) = causes.iter().max_by_key(|(_, cycles)| **cycles)?;
            let cycles = per_iteration(causes.values().sum());
            (cycles >= ON_CHAIN * mean).then(|| ChainLink {
                label: self.label(inst),
                text: self.text(inst),
                source: self.source(inst),
                library_source: self.library_source(inst),
                cause,
                cycles,
            })
        };
        let pc = |inst: &InstId| self.code.info(*inst).map_or(0, |info| info.pc);
        let mut links: Vec<_> = links.into_iter().collect();
        links.sort_by_key(|(inst, _)| pc(inst));
        let typical = iterations.typical().unwrap_or_default();
        // Excerpts tell the loop's cycles for each execution of its first instruction. With all cycles of the loop, this gives the executions in the
        // whole region.
        let per_header = iterations.own_cycles as f64 / iterations.headers.max(1) as f64;
        LoopRow {
            process: 0,
            function: self.function(found.header),
            label: self.label(found.header),
            source: self.source(found.header),
            library_source: self.library_source(found.header),
            depth: 0,
            cycles,
            share: 0.0,
            own_share: 0.0,
            iterations: cycles / per_header.max(f64::MIN_POSITIVE),
            trips: iterations.trips(),
            measured: iterations.list.len(),
            cycles_per_iteration: mean,
            range: typical.map(|at| iterations.list[at].cycles),
            instructions_per_iteration: iterations.instructions() as f64 / count,
            least: self.least(iterations),
            causes,
            chases_pointers: false,
            chain: links.into_iter().filter_map(link).collect(),
            views: Vec::new(),
        }
    }

    /// Returns [`LoopRow::chases_pointers`], judged by the loop's last iterations in the excerpts.
    fn chases_pointers(&self, iterations: &Iterations, graphs: &[Graph<'_>]) -> bool {
        const MAX_ITERATIONS_JUDGED: usize = 16;
        let load = |&(&(inst, _), _): &(&(InstId, Cause), &u64)| {
            self.code.get(inst).is_some_and(critical_path::Inst::is_load)
        };
        let most = iterations.path.iter().filter(load).max_by_key(|(_, cycles)| **cycles);
        let Some((&(inst, _), _)) = most else {
            return false;
        };
        // The last iterations come first: in an excerpt's first iteration, the load cannot be seen to wait for an earlier one.
        let known = iterations.list.iter().rev().filter_map(|iteration| {
            let graph = &graphs[iteration.excerpt];
            let rows = &self.excerpts.list[iteration.excerpt].rows;
            let at = iteration.rows.clone().rev().find(|&at| rows[at].inst == inst)?;
            Some(graph.waits_for_itself(at))
        });
        let known: Vec<bool> = known.take(MAX_ITERATIONS_JUDGED).collect();
        2 * known.iter().filter(|waits| **waits).count() > known.len()
    }

    fn least(&self, iterations: &Iterations) -> LeastCycles {
        let widths = self.excerpts.widths;
        let mut issued = [0u64; 3];
        for iteration in &iterations.list {
            for row in &self.excerpts.list[iteration.excerpt].rows[iteration.rows.clone()] {
                let queue = self.code.get(row.inst).map_or(Queue::None, |inst| inst.queue());
                match queue {
                    Queue::Integer => issued[0] += 1,
                    Queue::Memory => issued[1] += 1,
                    Queue::Fp => issued[2] += 1,
                    Queue::None => {}
                }
            }
        }
        let count = iterations.list.len().max(1) as f64;
        let cycles = |issued: u64, width: u32| issued as f64 / count / f64::from(width.max(1));
        LeastCycles {
            decode: cycles(iterations.instructions() as u64, widths.decode),
            int: cycles(issued[0], widths.int),
            mem: cycles(issued[1], widths.mem),
            fp: cycles(issued[2], widths.fp),
        }
    }
}
