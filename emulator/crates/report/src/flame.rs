//! Where the time went as trees, for flame graphs and call trees: by module, function, inlined function and source line; and by
//! callers, if the evaluation has calling contexts.

mod callers;

use std::borrow::Cow;
use std::collections::HashMap;

use profile::Evaluation;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use symbols::{Location, Symbols};

use super::columns::Column;
use super::gather::Rows;
use super::parts::Parts;
use callers::Folded;

/// Nodes with less than this part of the time are left out: 1 / 4,000 is less than half a pixel, and what an evaluation keeps
/// apart is less. Time below a node that is left out counts as that of the node above it.
const LEAST_PART: u64 = 4_000;

/// The trees of a run, as `flame.json` has them.
#[derive(Clone, Debug, Default, JsonSchema, Serialize, Deserialize)]
pub struct Flame {
    /// Names of nodes.
    pub names: Vec<String>,
    /// Profilers of the nodes' own cycles by column, as indices into [`columns`](crate::Common::columns).
    pub columns: Vec<usize>,
    /// Process, module, function, inlined functions, source line.
    pub lines: Vec<FlameNode>,
    /// Process, thread, functions from the outermost caller inwards, inlined ones among them. Empty without calling contexts. The
    /// parts of a node's cycles are those of its instructions in the whole process.
    pub callers: Vec<FlameNode>,
}

/// The kind of a node.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(into = "u8", try_from = "u8")]
pub enum FrameKind {
    /// A process.
    #[default]
    Process,
    /// A thread of another name than its process.
    Thread,
    /// A file of code.
    Module,
    /// A function.
    Function,
    /// A function that is inlined into the one above.
    Inlined,
    /// A source line.
    Line,
}

impl FrameKind {
    const ALL: [Self; 6] =
        [Self::Process, Self::Thread, Self::Module, Self::Function, Self::Inlined, Self::Line];

    /// Returns the names of the kinds, by their numbers.
    pub(super) fn names() -> [&'static str; 6] {
        Self::ALL.map(|kind| match kind {
            Self::Process => "process",
            Self::Thread => "thread",
            Self::Module => "module",
            Self::Function => "function",
            Self::Inlined => "inlined",
            Self::Line => "line",
        })
    }
}

impl JsonSchema for FrameKind {
    fn schema_name() -> Cow<'static, str> {
        "FrameKind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let kinds = Self::names().into_iter().enumerate();
        let names: Vec<String> = kinds.map(|(kind, name)| format!("{kind} {name}")).collect();
        json_schema!({
            "description": format!("The kind of a node: {}.", names.join(", ")),
            "type": "integer",
            "minimum": 0,
            "maximum": Self::ALL.len() - 1,
        })
    }
}

impl From<FrameKind> for u8 {
    fn from(kind: FrameKind) -> Self {
        kind as Self
    }
}

impl TryFrom<u8> for FrameKind {
    type Error = String;
    fn try_from(kind: u8) -> Result<Self, String> {
        let found = Self::ALL.get(usize::from(kind)).copied();
        found.ok_or_else(|| format!("expected a kind of frame from 0 to 5, found {kind}"))
    }
}

/// A node; its own cycles do not include those of the nodes below it. In JSON an array.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FlameNode(
    /// Index of the node above plus one, or 0 if there is none. Nodes above come first.
    pub u32,
    /// Kind of the node.
    pub FrameKind,
    /// The node's name, as an index into [`Flame::names`].
    pub u32,
    /// A function's module, as an index into [`modules`](crate::Common::modules); 0 for other nodes.
    pub u32,
    /// Own cycles by the Oracle: those of each category of cycle stacks without what a full store queue takes, and that as the last;
    /// empty if there are none.
    pub Vec<u64>,
    /// Own cycles by each of [`Flame::columns`], of as many as the Oracle has in the process; empty if there are none.
    pub Vec<u64>,
);

impl FlameNode {
    /// Names of the fields, in their order.
    pub(super) const FIELDS: [&str; 6] = ["above", "kind", "name", "module", "stack", "columns"];
}

impl Flame {
    /// Returns the flame graph of two runs: a node's own cycles are those of the run after, and those by column are the ones of
    /// the run before, both by part. `name_of` gives the common name of a node of either run (`true`: of the run before).
    pub(super) fn merged(
        before: &Self,
        after: &Self,
        scales: [f64; 2],
        name_of: impl Fn(bool, FrameKind, &str) -> String,
    ) -> Self {
        let mut names = Names::default();
        let mut merge = |of: fn(&Self) -> &[FlameNode]| {
            let mut nodes: Vec<FlameNode> = Vec::new();
            let mut index = HashMap::new();
            for (flame, is_before, scale) in [(before, true, scales[0]), (after, false, scales[1])]
            {
                let mut number = vec![0];
                for FlameNode(above, kind, name, _, cycles, _) in of(flame) {
                    let name = flame.names.get(*name as usize).map_or("?", String::as_str);
                    let name = names.number(&name_of(is_before, *kind, name));
                    // A file that was written wrongly must not lead outside the list.
                    let above = number.get(*above as usize).copied().unwrap_or(0);
                    let node = *index.entry((above, *kind, name)).or_insert_with(|| {
                        nodes.push(FlameNode(above, *kind, name, 0, Vec::new(), Vec::new()));
                        nodes.len() as u32
                    });
                    number.push(node);
                    let FlameNode(_, _, _, _, own, columns) = &mut nodes[node as usize - 1];
                    let sums = if is_before { columns } else { own };
                    sums.resize(sums.len().max(cycles.len()), 0);
                    sums.iter_mut()
                        .zip(cycles)
                        .for_each(|(sum, part)| *sum = sum.saturating_add(scaled(*part, scale)));
                }
            }
            nodes
        };
        let lines = merge(|flame| &flame.lines);
        let callers = match before.callers.is_empty() || after.callers.is_empty() {
            true => Vec::new(),
            false => merge(|flame| &flame.callers),
        };
        Self { names: names.list, columns: Vec::new(), lines, callers }
    }
}

/// Returns the cycles of the whole region that recorded `cycles` stand for.
fn scaled(cycles: u64, scale: f64) -> u64 {
    if scale == 1.0 { cycles } else { (cycles as f64 * scale).round() as u64 }
}

/// Each name once.
#[derive(Default)]
struct Names {
    index: HashMap<String, u32>,
    list: Vec<String>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(known) = self.index.get(name) {
            return *known;
        }
        let number = self.list.len() as u32;
        self.list.push(name.to_owned());
        self.index.insert(name.to_owned(), number);
        number
    }
}

/// Identifies a node: the node above it (index plus one, or 0), its kind, name and module.
type Key = (u32, FrameKind, u32, u32);

/// A tree that is being filled; units as in the evaluation.
#[derive(Default)]
struct Tree {
    index: HashMap<Key, u32>,
    nodes: Vec<(Key, Parts, Vec<f64>)>,
}

impl Tree {
    /// Returns the node of this kind, name and module below `above`, as an index plus one, and adds it if it is new.
    fn child(&mut self, above: u32, kind: FrameKind, name: u32, module: u32) -> u32 {
        let key = (above, kind, name, module);
        *self.index.entry(key).or_insert_with(|| {
            self.nodes.push((key, Parts::default(), Vec::new()));
            self.nodes.len() as u32
        })
    }

    fn add(&mut self, node: u32, parts: &Parts) {
        self.nodes[node as usize - 1].1 += *parts;
    }

    fn add_column(&mut self, node: u32, column: usize, units: f64) {
        let columns = &mut self.nodes[node as usize - 1].2;
        if columns.len() <= column {
            columns.resize(column + 1, 0.0);
        }
        columns[column] += units;
    }

    /// Returns the nodes that are large enough, in cycles; and for each node its index among these plus one, or that of the
    /// nearest node above it that is large enough.
    fn finish(mut self, least: f64, units: f64) -> (Vec<FlameNode>, Vec<u32>) {
        let most = |own: &(Key, Parts, Vec<f64>)| {
            let columns = own.2.iter().copied();
            columns.fold(own.1.total(), f64::max)
        };
        // Nodes come after those above them.
        let mut whole: Vec<f64> = self.nodes.iter().map(most).collect();
        for node in (0..self.nodes.len()).rev() {
            let above = self.nodes[node].0.0;
            if above > 0 {
                whole[above as usize - 1] += whole[node];
            }
        }
        for node in (0..self.nodes.len()).rev() {
            let above = self.nodes[node].0.0;
            if above > 0 && whole[node] < least {
                let (_, parts, columns) = &mut self.nodes[node];
                let (parts, columns) = (std::mem::take(parts), std::mem::take(columns));
                self.add(above, &parts);
                for (column, units) in columns.into_iter().enumerate() {
                    self.add_column(above, column, units);
                }
            }
        }
        let mut number = vec![0; self.nodes.len() + 1];
        let mut out = Vec::new();
        for (node, ((above, kind, name, module), parts, columns)) in
            self.nodes.into_iter().enumerate()
        {
            let above = number[above as usize];
            number[node + 1] = above;
            if whole[node] < least {
                continue;
            }
            let cycles = |units_of: &[f64]| match units_of.iter().all(|part| *part == 0.0) {
                true => Vec::new(),
                false => units_of.iter().map(|part| (part / units).round() as u64).collect(),
            };
            out.push(FlameNode(above, kind, name, module, cycles(&parts.0), cycles(&columns)));
            number[node + 1] = out.len() as u32;
        }
        (out, number)
    }
}

/// Nodes of a process and its instructions in [`Flame::lines`], as indices plus one or 0; and its time by callers over time.
#[derive(Default)]
pub(super) struct Placed {
    pub process: u32,
    /// Node of each row of the process.
    pub leaves: Vec<u32>,
    /// The process in [`Flame::callers`], as an index plus one.
    pub caller_process: u32,
    /// Nodes of each bin of time in [`Flame::callers`] (ascending, before small nodes are left out) and their units.
    pub callers: Vec<Vec<(u32, u64)>>,
}

/// Fills the trees process by process.
pub(super) struct FlameBuilder<'a> {
    evaluation: &'a Evaluation,
    symbols: &'a Symbols,
    names: Names,
    columns: Vec<usize>,
    lines: Tree,
    callers: Tree,
    contexts: Option<Folded<'a>>,
    /// Nodes of each process, in the order in which processes are added, before small nodes are left out.
    placed: Vec<Placed>,
}

impl<'a> FlameBuilder<'a> {
    pub(crate) fn new(
        evaluation: &'a Evaluation,
        symbols: &'a Symbols,
        columns: &[Column],
    ) -> Self {
        let primary = |(index, column): (usize, &Column)| column.primary.then_some(index);
        Self {
            evaluation,
            symbols,
            names: Names::default(),
            columns: columns.iter().enumerate().filter_map(primary).collect(),
            lines: Tree::default(),
            callers: Tree::default(),
            contexts: Folded::of(evaluation),
            placed: Vec::new(),
        }
    }

    fn name(&mut self, name: &str) -> u32 {
        self.names.number(name)
    }

    /// Adds a process of this name.
    pub(crate) fn add(&mut self, name: &str, rows: &Rows) {
        let name = self.name(name);
        let process = self.lines.child(0, FrameKind::Process, name, 0);
        let scales: Vec<f64> = self
            .columns
            .iter()
            .map(|column| {
                let total = rows.columns[*column].totals.total;
                rows.oracle_total as f64 / total.max(1) as f64
            })
            .collect();
        let mut leaves = Vec::with_capacity(rows.insts.len());
        for row in 0..rows.insts.len() {
            let leaf = self.line(process, &self.symbols.locations[rows.places[row] as usize]);
            self.lines.add(leaf, &rows.parts(row));
            leaves.push(leaf);
        }
        for (at, scale) in scales.iter().enumerate() {
            for (row, units) in rows.columns[self.columns[at]].by_row.iter() {
                self.lines.add_column(leaves[row], at, units as f64 * scale);
            }
        }
        let mut placed = Placed { process, leaves, ..Placed::default() };
        if let Some(mut folded) = self.contexts.take() {
            self.add_contexts(name, rows, &mut folded, &scales, &mut placed);
            self.contexts = Some(folded);
        }
        self.placed.push(placed);
    }

    /// The node of a place in the code, below its process's.
    fn line(&mut self, process: u32, at: &Location) -> u32 {
        let path = self.symbols.module(at.module).path.clone();
        let module = self.name(&path);
        let node = self.lines.child(process, FrameKind::Module, module, at.module.0);
        let mut tree = std::mem::take(&mut self.lines);
        let mut node = self.frames(&mut tree, node, at);
        if let Some(source) = at.source.as_ref().filter(|source| source.line > 0) {
            let name = self.name(&format!("{}:{}", source.file, source.line));
            node = tree.child(node, FrameKind::Line, name, 0);
        }
        self.lines = tree;
        node
    }

    /// The node of a function and what is inlined there, below another.
    fn frames(&mut self, tree: &mut Tree, above: u32, at: &Location) -> u32 {
        let symbols = self.symbols;
        let name = self.name(&symbols.function(at.function).name);
        let mut node = tree.child(above, FrameKind::Function, name, at.module.0);
        for frame in at.inlined.iter().rev() {
            let name = self.name(&frame.function);
            node = tree.child(node, FrameKind::Inlined, name, 0);
        }
        node
    }

    /// The trees, and where the processes are in them.
    pub(crate) fn finish(mut self) -> (Flame, Vec<Placed>) {
        let units = self.evaluation.oracle.units_per_cycle().max(1) as f64;
        let least = self.evaluation.oracle.total() as f64 / LEAST_PART as f64;
        let (lines, number) = self.lines.finish(least, units);
        for placed in &mut self.placed {
            for node in placed.leaves.iter_mut().chain([&mut placed.process]) {
                *node = number[*node as usize];
            }
        }
        let (callers, number) = self.callers.finish(least, units);
        for placed in &mut self.placed {
            placed.caller_process = number[placed.caller_process as usize];
            for (node, _) in placed.callers.iter_mut().flatten() {
                *node = number[*node as usize];
            }
        }
        let flame = Flame { names: self.names.list, columns: self.columns, lines, callers };
        (flame, self.placed)
    }
}
