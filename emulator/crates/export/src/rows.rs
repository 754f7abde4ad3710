//! Rows of a file: the instructions, functions and callers that it shows.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use commit_trace::InstId;
use profile::{Context, ContextId, ContextWeights, Contexts, Evaluation, ProcessId, ThreadId};
use symbols::place::Places;
use symbols::{FunctionId, Symbolizer, Symbols};

use super::Options;

/// Instructions with less than 1 / `INSTRUCTION_PART` of a profile's time, in a calling context, are charged to their function there. There
/// are millions of them, of which none can be seen by itself.
pub(super) const INSTRUCTION_PART: u64 = 20_000;

/// An instruction as executed in a calling context, or what a function's instructions share that have no row of their own.
#[derive(Clone, Copy)]
pub(super) struct ContextRow {
    pub process: ProcessId,
    pub thread: ThreadId,
    /// The instruction, or any of the function's.
    pub inst: InstId,
    /// True if the row is a whole function's, not an instruction's.
    pub is_function: bool,
    /// Index of the row of the call or trap that entered this context.
    pub caller: Option<usize>,
    /// Index into the symbols' locations.
    pub location: u32,
}

/// All rows of a file.
pub(super) struct Rows<'a> {
    pub list: Vec<ContextRow>,
    /// Rows of instructions.
    instructions: HashMap<(ContextId, InstId), u32>,
    /// Rows of functions.
    functions: HashMap<(ContextId, FunctionId), u32>,
    places: Places<'a>,
    /// The process of each context.
    processes: Vec<ProcessId>,
    /// The function of each location.
    function_of: Vec<FunctionId>,
}

impl<'a> Rows<'a> {
    /// Rows for these profiles, by the contexts that are shown. See [`Options::exact`], [`Options::by_address`].
    pub(crate) fn new(
        evaluation: &'a Evaluation,
        contexts: &Contexts,
        profiles: &[ContextWeights],
        symbolizer: &Symbolizer,
        options: &Options<'_>,
    ) -> (Self, Symbols) {
        // A damaged trace may lack the static info of an instruction, which the export then leaves out.
        let is_known = |inst: InstId| (inst.0 as usize) < evaluation.static_info.len();
        let mut places = Places::new(evaluation);
        let mut entered = BTreeSet::new();
        for (context, inst, _) in profiles.iter().flatten() {
            if is_known(*inst) {
                places.add(contexts.get(*context).process, *inst);
            }
            entered.insert(*context);
        }
        let mut calls = HashSet::new();
        for context in entered {
            let mut callee = context;
            // If a call is there already, so are its callers.
            while let Some((caller, inst)) = contexts.get(callee).caller
                && is_known(inst)
                && calls.insert((caller, inst))
            {
                places.add(contexts.get(caller).process, inst);
                callee = caller;
            }
        }
        let symbols = symbolizer.resolve(&places.take());

        let mut rows = Self {
            list: Vec::new(),
            instructions: HashMap::new(),
            functions: HashMap::new(),
            places,
            processes: Vec::new(),
            function_of: symbols.locations.iter().map(|at| at.function).collect(),
        };
        rows.processes = (0..contexts.len() as u32)
            .map(|context| contexts.get(ContextId(context)).process)
            .collect();
        let mut keys: BTreeSet<(ContextId, InstId)> = calls.into_iter().collect();
        let mut functions: BTreeMap<(ContextId, FunctionId), InstId> = BTreeMap::new();
        for weights in profiles {
            let total: u64 = weights.iter().map(|(_, _, units)| units).sum();
            let least = match options.exact {
                true => 0,
                false => total / INSTRUCTION_PART,
            };
            let mut everywhere: HashMap<InstId, u64> = HashMap::new();
            if options.by_address {
                for (_, inst, units) in weights {
                    *everywhere.entry(*inst).or_default() += units;
                }
            }
            for (context, inst, units) in weights {
                if !is_known(*inst) {
                    continue;
                }
                let all = everywhere.get(inst).copied().unwrap_or(*units);
                if all >= least {
                    keys.insert((*context, *inst));
                } else if let Some(function) = rows.function(*context, *inst) {
                    let first = functions.entry((*context, function)).or_insert(*inst);
                    *first = (*first).min(*inst);
                }
            }
        }
        rows.number(contexts, keys, functions);
        (rows, symbols)
    }

    fn number(
        &mut self,
        contexts: &Contexts,
        keys: BTreeSet<(ContextId, InstId)>,
        functions: BTreeMap<(ContextId, FunctionId), InstId>,
    ) {
        // Calls are among the keys: every row finds its caller's number.
        self.instructions = keys.iter().copied().zip(0..).collect();
        for key in keys {
            self.add(contexts, key, false);
        }
        for ((context, function), inst) in functions {
            let row = self.list.len() as u32;
            self.functions.insert((context, function), row);
            self.add(contexts, (context, inst), true);
        }
    }

    fn add(
        &mut self,
        contexts: &Contexts,
        (context, inst): (ContextId, InstId),
        is_function: bool,
    ) {
        let Context { process, thread, caller } = contexts.get(context);
        let location = self.places.location(process, inst);
        self.list.push(ContextRow {
            process,
            thread,
            inst,
            is_function,
            caller: caller.and_then(|call| self.instructions.get(&call)).map(|row| *row as usize),
            location: location.unwrap_or_default(),
        });
    }

    fn function(&self, context: ContextId, inst: InstId) -> Option<FunctionId> {
        let process = self.processes.get(context.0 as usize)?;
        let location = self.places.location(*process, inst)?;
        self.function_of.get(location as usize).copied()
    }

    /// Returns the row that an instruction is charged to in a context.
    pub(crate) fn of(&self, context: ContextId, inst: InstId) -> Option<usize> {
        let own = self.instructions.get(&(context, inst));
        let row = match own {
            Some(row) => row,
            None => self.functions.get(&(context, self.function(context, inst)?))?,
        };
        Some(*row as usize)
    }

    /// True if some instructions have no row of their own.
    pub(crate) fn has_functions(&self) -> bool {
        !self.functions.is_empty()
    }
}
