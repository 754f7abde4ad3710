//! `truth.json`: what the timing cores counted of each instruction and cache line, with the names of the report.

use std::collections::HashMap;

use ::truth::{
    Columns, Counted, FORMAT, Instruction, LINE_BYTES, LineAccess, Process, SharedLines, Truth,
    UnitTotals,
};
use profile::{Evaluation, ProcessId, process_names};
use symbols::place;
use symbols::{DataObjects, Place, ProgramData, Symbolizer};

use crate::failure::{BadInput, bad_input};
use crate::results::Results;

const NAME: &str = "truth.json";

/// Addresses from here up are the kernel's.
const KERNEL_HALF: u64 = 1 << 63;

/// What the collectors of all harts found.
pub struct Collected {
    /// By hart and number.
    pub instructions: Vec<Vec<Counted>>,
    /// Of all harts.
    pub lines: SharedLines,
    /// By hart, what became of the overflows of the unit that samples instructions.
    pub units: Vec<UnitTotals>,
}

impl Collected {
    /// Writes it among a run's results, with names from the profilers' `evaluations` of the harts.
    pub fn write(
        self,
        run: &mut Results,
        evaluations: &[Evaluation],
        symbolizer: &Symbolizer,
    ) -> anyhow::Result<()> {
        let truth = self.named(evaluations, symbolizer);
        run.write(NAME, (serde_json::to_string(&truth)? + "\n").as_bytes())
    }

    fn named(self, evaluations: &[Evaluation], symbolizer: &Symbolizer) -> Truth {
        let mut names = Names::default();
        let mut instructions = Vec::new();
        let mut places = Vec::new();
        for (hart, (observed, evaluation)) in
            (0..).zip(self.instructions.into_iter().zip(evaluations))
        {
            let cycles = oracle_cycles(evaluation);
            for Counted {
                static_info,
                counts,
                ..
            } in observed
            {
                let Some(info) = static_info.filter(|_| !counts.is_empty()) else {
                    continue;
                };
                let owner = evaluation.spaces.get(&info.space).copied();
                places.push(place::place(
                    evaluation,
                    owner.unwrap_or(ProcessId::BOOT),
                    &info,
                ));
                instructions.push(Instruction {
                    hart,
                    id: info.id.0,
                    pc: info.pc,
                    raw: info.raw,
                    target: info.target,
                    class: info.class,
                    privilege: info.privilege,
                    process: owner.map(|owner| names.process(evaluation, owner)),
                    function: 0,
                    offset: 0,
                    oracle_cycles: rounded(cycles.get(&info.id.0)),
                    counts,
                });
            }
        }
        let symbols = symbolizer.resolve(&places);
        for (instruction, location) in instructions.iter_mut().zip(&symbols.locations) {
            let function = symbols.function(location.function);
            instruction.function = names.function(&function.name);
            // Of what no symbol names, the distance from the start of its file.
            instruction.offset = location.offset.wrapping_sub(function.start);
        }
        let owners: HashMap<(u32, u32), u32> = { instructions.iter() }
            .filter_map(|i| Some(((i.hart, i.id), i.process?)))
            .collect();
        let first = |hart, inst: commit_trace::InstId| owners.get(&(hart, inst.0)).copied();
        let lines = self.lines.with(std::mem::take);
        let (mut lines, lines_left_out) = lines.into_file(first);
        let mut data = DataNames::new(symbolizer, evaluations, &names.keys);
        for line in &mut lines {
            // As whoever waits most calls it.
            let weight = |own: &&LineAccess| (own.counts.peer_cycles, own.counts.accesses());
            if let Some(own) = line.uses.iter().max_by_key(weight) {
                line.object = data.name(own.process, own.counts.va);
            }
        }
        Truth {
            format: FORMAT,
            line_bytes: LINE_BYTES,
            columns: Columns,
            functions: names.functions,
            processes: names.processes,
            instructions,
            units: self.units,
            lines,
            lines_left_out,
        }
    }
}

/// The truth that a run wrote, if it wrote one.
pub fn read(run: &Results) -> Result<Option<Truth>, BadInput> {
    if !run.has(NAME) {
        return Ok(None);
    }
    let truth: Truth = run.json(NAME)?;
    { truth.check() }.map_err(|e| bad_input(&run.path().join(NAME), e))?;
    Ok(Some(truth))
}

/// The Oracle's cycles by instruction, in all processes.
fn oracle_cycles(evaluation: &Evaluation) -> HashMap<u32, f64> {
    let units = evaluation.oracle.units_per_cycle().max(1) as f64;
    let mut cycles = HashMap::new();
    for process in (0..evaluation.oracle.processes()).map(ProcessId) {
        for (inst, weight) in evaluation.oracle.of(process) {
            *cycles.entry(inst.0).or_insert(0.0) += weight as f64 / units;
        }
    }
    cycles
}

/// To thousandths, which keeps the file short.
fn rounded(cycles: Option<&f64>) -> f64 {
    (cycles.copied().unwrap_or(0.0) * 1e3).round() / 1e3
}

/// Functions and processes, each once. A process that ran on several harts has a number on each of them, and one name.
#[derive(Default)]
struct Names {
    functions: Vec<String>,
    known: HashMap<String, u32>,
    processes: Vec<Process>,
    /// The kernel's process id and the number of its program, of each of `processes`.
    keys: Vec<profile::ProcessKey>,
}

impl Names {
    fn function(&mut self, name: &str) -> u32 {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let number = self.functions.len() as u32;
        self.functions.push(name.to_owned());
        self.known.insert(name.to_owned(), number);
        number
    }

    fn process(&mut self, evaluation: &Evaluation, id: ProcessId) -> u32 {
        let process = evaluation.processes.get(id.0 as usize);
        let key = process.map_or((None, 0, None), profile::Process::key);
        if let Some(known) = self.keys.iter().position(|known| *known == key) {
            return known as u32;
        }
        let pid = key.0;
        self.keys.push(key);
        self.processes.push(Process {
            pid,
            name: process_names(evaluation, &[id]).swap_remove(0),
        });
        self.keys.len() as u32 - 1
    }
}

/// Names of data objects by address: in the kernel, and in what processes have mapped.
struct DataNames<'a> {
    symbolizer: &'a Symbolizer,
    evaluations: &'a [Evaluation],
    keys: &'a [profile::ProcessKey],
    kernel: Option<DataObjects>,
    /// By process.
    programs: HashMap<u32, ProgramData>,
}

impl<'a> DataNames<'a> {
    fn new(
        symbolizer: &'a Symbolizer,
        evaluations: &'a [Evaluation],
        keys: &'a [profile::ProcessKey],
    ) -> Self {
        Self {
            symbolizer,
            evaluations,
            keys,
            kernel: symbolizer.data_objects(&Place::Kernel(0)),
            programs: HashMap::new(),
        }
    }

    /// The object at an address, with the distance from its start; empty if no symbol names it.
    fn name(&mut self, process: Option<u32>, va: u64) -> String {
        let found = match process {
            _ if va >= KERNEL_HALF => { self.kernel.as_ref() }
                .and_then(|kernel| first_in_line(va, |address| kernel.find(address))),
            Some(process) => {
                let program = self.program(process);
                first_in_line(va, |address| program.find(address))
            }
            None => None,
        };
        match found {
            Some((name, 0)) => name.to_owned(),
            Some((name, within)) => format!("{name}+{within:#x}"),
            None => String::new(),
        }
    }

    fn program(&mut self, process: u32) -> &ProgramData {
        let (symbolizer, evaluations, key) = (
            self.symbolizer,
            self.evaluations,
            &self.keys[process as usize],
        );
        self.programs.entry(process).or_insert_with(|| {
            let same = |p: &&profile::Process| p.key() == *key;
            let own = evaluations
                .iter()
                .flat_map(|e| e.processes.iter().filter(same));
            symbolizer.program_data(own.flat_map(|process| &process.mappings))
        })
    }
}

/// The first object in a line, with the distance from its start.
fn first_in_line<'a>(
    line: u64,
    find: impl Fn(u64) -> Option<(&'a str, u64)>,
) -> Option<(&'a str, u64)> {
    (0..LINE_BYTES).find_map(|byte| find(line.wrapping_add(byte)))
}
