//! Inclusive time: of a function with all that it calls, by the tree of callers.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use symbols::{Location, Source, Symbols};

use super::flame::{Flame, FlameNode, FrameKind};
use super::places::short;
use super::rows::line;
use super::tables::{CommandRow, FunctionRow, ProcessReport};
use super::widths::{fit_name, fixed};

/// Share of a command's cycles from which on a verdict names a function with all that it calls.
const MIN_SHARE: f64 = 0.1;
/// Share of a command's cycles from which on a function is no more than the way to others, as `main` is.
const MAX_SHARE: f64 = 0.97;
/// Least share that a function's callees must add to its own cycles for a verdict to name it.
const MIN_CALLED_SHARE: f64 = 0.05;
/// Functions that a verdict names, and callees of each.
const MAX_FUNCTIONS: usize = 3;
const MAX_CALLEES: usize = 3;

/// A function of the program with all that it calls.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct InclusiveRow {
    /// The function's name.
    pub function: String,
    /// The function's first known line, `file:line`.
    pub source: Option<String>,
    /// Share of the command's cycles.
    pub share: f64,
    /// What it calls itself, inlined functions included, with what that calls; the most first.
    pub callees: Vec<CalleeRow>,
}

/// A function that another one calls.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct CalleeRow {
    /// The function's name.
    pub function: String,
    /// Share of the command's cycles, below that caller.
    pub share: f64,
}

impl InclusiveRow {
    /// Returns a sentence: the function's share, and what most of it is spent in.
    pub(super) fn in_words(&self) -> String {
        let name = fit_name(&self.function, 60);
        let at = self
            .source
            .as_deref()
            .map_or_else(String::new, |source| format!(" ({})", short(source)));
        let callees: Vec<String> = self
            .callees
            .iter()
            .map(|callee| format!("{} % {}", fixed(callee.share), fit_name(&callee.function, 40)))
            .collect();
        let mut words = format!("{} % is below {name}{at}", fixed(self.share));
        if !callees.is_empty() {
            words += &format!(": {}", callees.join(", "));
        }
        words
    }
}

/// Functions of programs' own sources, out of line ones and inlined ones: by module and name, each with its first known line.
pub(super) type OwnFunctions = HashMap<(usize, String), Source>;

/// Finds the functions of programs' own sources.
pub(super) fn own_functions(symbols: &Symbols) -> OwnFunctions {
    let mut own = OwnFunctions::new();
    let mut add = |module: usize, name: &str, source: Option<&Source>| {
        let Some(source) = source.filter(|source| source.line > 0 && source.is_of_program()) else {
            return;
        };
        let key = (module, name.to_owned());
        match own.get_mut(&key) {
            Some(known) if known.file == source.file => known.line = known.line.min(source.line),
            Some(_) => {}
            None => _ = own.insert(key, source.clone()),
        }
    };
    for at in &symbols.locations {
        let Location { source, inlined, .. } = at;
        // The code of a function lies at the line of the location; what is inlined there was called from the line of the next one.
        let module = at.module.0 as usize;
        let mut here = source.as_ref();
        for frame in inlined {
            add(module, &frame.function, here);
            here = frame.call.as_ref();
        }
        if !symbols.module(at.module).path.starts_with('[') {
            add(module, &symbols.function(at.function).name, here);
        }
    }
    own
}

/// The tree of callers with the cycles below each node.
pub(super) struct Inclusive<'a> {
    flame: &'a Flame,
    /// Cycles by node, with those of all nodes below it.
    cycles: Vec<f64>,
    /// The process of each node, by index.
    process: Vec<usize>,
}

impl<'a> Inclusive<'a> {
    /// Adds up a tree; `None` if calls were not followed.
    pub(crate) fn new(flame: &'a Flame, processes: &[ProcessReport]) -> Option<Self> {
        if flame.callers.is_empty() {
            return None;
        }
        let known: HashMap<&str, usize> =
            processes.iter().enumerate().map(|(index, process)| (&*process.name, index)).collect();
        let mut cycles: Vec<f64> = Vec::with_capacity(flame.callers.len());
        let mut process: Vec<usize> = Vec::with_capacity(flame.callers.len());
        for FlameNode(above, _, name, _, own, _) in &flame.callers {
            cycles.push(own.iter().map(|part| *part as f64).sum());
            process.push(match above.checked_sub(1) {
                Some(above) => process[above as usize],
                None => known.get(&*flame.names[*name as usize]).copied().unwrap_or(0),
            });
        }
        // Nodes come after those above them.
        for at in (0..cycles.len()).rev() {
            if let Some(above) = flame.callers[at].0.checked_sub(1) {
                cycles[above as usize] += cycles[at];
            }
        }
        Some(Self { flame, cycles, process })
    }

    fn name(&self, at: usize) -> &'a str {
        &self.flame.names[self.flame.callers[at].2 as usize]
    }

    fn above(&self, at: usize) -> Option<usize> {
        self.flame.callers[at].0.checked_sub(1).map(|above| above as usize)
    }

    /// Returns the module of a function's node; for an inlined function, the module of the function that it is inlined into.
    fn module(&self, at: usize) -> usize {
        let mut nodes = std::iter::successors(Some(at), |at| self.above(*at));
        let function = nodes.find(|at| self.flame.callers[*at].1 == FrameKind::Function);
        function.map_or(0, |at| self.flame.callers[at].3 as usize)
    }

    fn is_function(&self, at: usize) -> bool {
        matches!(self.flame.callers[at].1, FrameKind::Function | FrameKind::Inlined)
    }

    /// Returns whether a function's node is not below another node of the same function: a recursive function counts once.
    fn is_outermost(&self, at: usize) -> bool {
        let of = |at: usize| {
            let FlameNode(_, kind, name, module, ..) = &self.flame.callers[at];
            (*kind, *name, *module)
        };
        let mut above = std::iter::successors(self.above(at), |at| self.above(*at));
        !above.any(|other| of(other) == of(at))
    }

    /// Adds the inclusive share to rows of functions.
    pub(crate) fn add_to(&self, functions: &mut [FunctionRow], processes: &[ProcessReport]) {
        let mut sums: HashMap<(usize, &str, usize), f64> = HashMap::new();
        for at in 0..self.cycles.len() {
            if self.flame.callers[at].1 == FrameKind::Function && self.is_outermost(at) {
                let module = self.flame.callers[at].3 as usize;
                *sums.entry((self.process[at], self.name(at), module)).or_default() +=
                    self.cycles[at];
            }
        }
        for row in functions {
            let known = sums.get(&(row.process, &*row.name, row.module));
            let whole = processes[row.process].cycles.max(f64::MIN_POSITIVE);
            // A function that is too small for the tree has only its own time.
            let share = known.map_or(0.0, |cycles| cycles / whole);
            row.total = Some(share.clamp(row.share, 1.0));
        }
    }

    /// The functions of the program's own sources below which most of a command's time is.
    pub(crate) fn of_command(&self, command: &CommandRow, own: &OwnFunctions) -> Vec<InclusiveRow> {
        let whole = command.cycles.max(f64::MIN_POSITIVE);
        let mut sums: HashMap<(usize, String), OutermostNodes> = HashMap::new();
        for at in 0..self.cycles.len() {
            let wanted = self.is_function(at)
                && command.members.contains(&self.process[at])
                && self.is_outermost(at);
            let key = (self.module(at), self.name(at).to_owned());
            if wanted && own.contains_key(&key) {
                let of = sums.entry(key).or_default();
                of.cycles += self.cycles[at];
                of.nodes.push(at);
            }
        }
        let children = self.children();
        let mut rows: Vec<InclusiveRow> = Vec::new();
        for (key, sums) in sums {
            let function = &*key.1;
            let mut below: HashMap<&str, f64> = HashMap::new();
            for &node in &sums.nodes {
                for &child in &children[node] {
                    if self.is_function(child) && self.name(child) != function {
                        *below.entry(self.name(child)).or_default() += self.cycles[child];
                    }
                }
            }
            let calls: f64 = below.values().sum();
            let share = sums.cycles / whole;
            if !(MIN_SHARE..MAX_SHARE).contains(&share) || calls < MIN_CALLED_SHARE * whole {
                continue;
            }
            let mut callees: Vec<CalleeRow> = below
                .into_iter()
                .map(|(function, cycles)| CalleeRow {
                    function: function.to_owned(),
                    share: cycles / whole,
                })
                .filter(|callee| callee.share >= MIN_CALLED_SHARE)
                .collect();
            callees.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.function.cmp(&b.function)));
            callees.truncate(MAX_CALLEES);
            rows.push(InclusiveRow {
                function: function.to_owned(),
                source: own.get(&key).map(line),
                share,
                callees,
            });
        }
        rows.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.function.cmp(&b.function)));
        rows.truncate(MAX_FUNCTIONS);
        rows
    }

    /// By node the nodes below it.
    fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.cycles.len()];
        for at in 0..self.cycles.len() {
            if let Some(above) = self.above(at) {
                children[above].push(at);
            }
        }
        children
    }
}

/// A function's outermost nodes, and their cycles.
#[derive(Default)]
struct OutermostNodes {
    cycles: f64,
    nodes: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use profile::synthetic::evaluation;

    use super::*;
    use crate::tests::report_of;

    /// `main` calls `parse`, which is inlined, throws, reads, and is called again below; and it writes.
    fn flame() -> Flame {
        let node = |above, kind, name, cycles: u64| {
            FlameNode(above, kind, name, 0, vec![cycles, 0, 0], Vec::new())
        };
        let names = ["quickstart", "main", "parse", "__cxa_throw", "operator>>", "write"];
        Flame {
            names: names.map(str::to_owned).to_vec(),
            columns: Vec::new(),
            lines: Vec::new(),
            callers: vec![
                node(0, FrameKind::Process, 0, 0),
                node(1, FrameKind::Function, 1, 10),
                node(2, FrameKind::Inlined, 2, 100),
                node(3, FrameKind::Function, 3, 300),
                node(3, FrameKind::Function, 4, 300),
                node(5, FrameKind::Inlined, 2, 50),
                node(2, FrameKind::Function, 5, 240),
            ],
        }
    }

    #[test]
    fn time_below_functions() {
        let report = report_of(&evaluation(), None);
        let at = report
            .common
            .processes
            .iter()
            .position(|process| process.name == "quickstart")
            .unwrap();
        let mut processes = report.common.processes.clone();
        processes[at].cycles = 1000.0;
        let flame = flame();
        let inclusive = Inclusive::new(&flame, &processes).unwrap();
        let mut functions: Vec<FunctionRow> = { ["main", "operator>>", "elsewhere"].iter() }
            .map(|name| FunctionRow {
                process: at,
                name: (*name).to_owned(),
                module: 0,
                share: 0.01,
                ..report.common.functions[0].clone()
            })
            .collect();
        inclusive.add_to(&mut functions, &processes);
        let totals: Vec<Option<f64>> = functions.iter().map(|row| row.total).collect();
        assert_eq!(totals, [Some(1.0), Some(0.35), Some(0.01)]);
        let line = |line| Source { file: "/home/me/logstat.cpp".into(), line };
        let own = [("main", line(40)), ("parse", line(15))];
        let own = own.map(|(name, at)| ((0, name.to_owned()), at)).into();
        let command = CommandRow {
            name: "quickstart".into(),
            count: 1,
            members: vec![at],
            cycles: 1000.0,
            share: 1.0,
            stack: [0.0; 7],
            margins: None,
            stack_margins: None,
            class: "compute",
        };
        // All is below `main`, which says nothing; what calls itself counts once.
        let rows = inclusive.of_command(&command, &own);
        let [parse] = &rows[..] else {
            panic!("{rows:?}");
        };
        assert_eq!(
            parse.in_words(),
            "75.0 % is below parse (logstat.cpp:15): 35.0 % operator>>, 30.0 % __cxa_throw"
        );
        assert!(Inclusive::new(&Flame::default(), &processes).is_none());
    }
}
