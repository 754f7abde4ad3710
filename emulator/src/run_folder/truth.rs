//! `truth.json`: what the timing cores counted of each instruction and cache line, with the names of the report.

use std::collections::{HashMap, HashSet};

use ::truth::{Columns, Counted, FORMAT, Instruction, LINE_BYTES, LineAccess, Process, Truth};
use commit_trace::InstId;
use profile::{Evaluation, ProcessId};
use simulation::CollectedTruth;
use symbols::place;
use symbols::{DataObjects, Place, ProgramData, Symbolizer};

use crate::failure::{BadInput, bad_input};
use crate::run_folder::Results;

const NAME: &str = "truth.json";

/// Addresses from here up are the kernel's.
const KERNEL_HALF: u64 = 1 << 63;

/// Writes the truth among a run's results, with names from the profilers' `evaluations` of the harts. Processes whose
/// kernel's numbers are not among those `sampled` are told as one with the others of their program.
pub(crate) fn write(
    collected: CollectedTruth,
    run: &mut Results,
    evaluations: &[Evaluation],
    symbolizer: &Symbolizer,
    sampled: &HashSet<u32>,
) -> anyhow::Result<()> {
    let truth = named(collected, evaluations, symbolizer, sampled);
    let mut text = serde_json::to_vec(&truth)?;
    drop(truth);
    text.push(b'\n');
    run.write(NAME, &text)
}

fn named(
    collected: CollectedTruth,
    evaluations: &[Evaluation],
    symbolizer: &Symbolizer,
    sampled: &HashSet<u32>,
) -> Truth {
    let mut names = Names::default();
    let mut instructions = Vec::new();
    let mut places = Vec::new();
    let mut harts = Vec::new();
    for (hart, (collector, evaluation)) in
        (0..).zip(collected.collectors.into_iter().zip(evaluations))
    {
        let cycles = oracle_cycles(evaluation);
        let mut counted = collector.finish(|process| is_sampled(process, sampled));
        let known: HashMap<_, _> =
            evaluation.processes.iter().map(|process| (process.key(), process.id)).collect();
        let numbers = |id: ProcessId| known.get(&counted.processes[id.0 as usize].key()).copied();
        let processes: Vec<u32> =
            counted.processes.iter().map(|process| names.process(process)).collect();
        let own = std::mem::take(&mut counted.instructions);
        for Counted { inst, static_info, mapped_in, process, counts } in own {
            let Some(info) = static_info.filter(|_| !counts.is_empty()) else {
                continue;
            };
            let owner = mapped_in.and_then(numbers).unwrap_or(ProcessId::BOOT);
            places.push(place::place(evaluation, owner, &info));
            instructions.push(Instruction {
                hart,
                id: inst.0,
                pc: info.pc,
                raw: info.raw,
                target: info.target,
                class: info.class,
                privilege: info.privilege,
                process: process.map(|own| processes[own as usize]),
                function: 0,
                offset: 0,
                oracle_cycles: rounded(cycles.get(&inst.0)),
                counts,
            });
        }
        harts.push((counted, processes));
    }
    let symbols = symbolizer.resolve(&places);
    for (instruction, location) in instructions.iter_mut().zip(&symbols.locations) {
        let function = symbols.function(location.function);
        instruction.function = names.function(&function.name);
        // Where no symbol names an instruction, the offset is the distance from the start of its file.
        instruction.offset = location.offset.wrapping_sub(function.start);
    }
    let process = |hart: u32, id: ProcessId| {
        let (counted, processes) = harts.get(hart as usize)?;
        processes.get(counted.process(id) as usize).copied()
    };
    let present: HashSet<(u32, u32)> = instructions.iter().map(|own| (own.hart, own.id)).collect();
    let stands_for = |hart: u32, inst: InstId| match harts.get(hart as usize) {
        Some((counted, _)) if !present.contains(&(hart, inst.0)) => {
            InstId(counted.aliases.get(&inst.0).copied().unwrap_or(inst.0))
        }
        _ => inst,
    };
    let lines = collected.lines.with(std::mem::take);
    let (mut lines, lines_left_out) = lines.into_file(process, stands_for);
    let mut data = DataNames::new(symbolizer, evaluations, &names.keys);
    for line in &mut lines {
        // The program that waits most for the line says what the line's object is called.
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
        units: collected.units,
        lines,
        lines_left_out,
    }
}
/// Returns the truth that a run wrote, if it wrote one.
pub(crate) fn read(run: &Results) -> Result<Option<Truth>, BadInput> {
    if !run.has(NAME) {
        return Ok(None);
    }
    let truth: Truth = run.json(NAME)?;
    truth.check().map_err(|e| bad_input(&run.path().join(NAME), e))?;
    Ok(Some(truth))
}

/// Returns the Oracle's cycles by instruction, in all processes.
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

/// Samples name it, so that its counts have to be told by themselves.
fn is_sampled(process: &profile::Process, sampled: &HashSet<u32>) -> bool {
    process.pid.is_some_and(|pid| sampled.contains(&pid))
}

/// Returns the name of a process, or of an entry that stands for many.
fn process_name(process: &profile::Process) -> String {
    match process.stands_for {
        Some(processes) => format!("{} ({processes} processes)", process.name),
        None => process.name.clone(),
    }
}

/// Rounds cycles to thousandths, which keeps the file short.
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

    fn process(&mut self, process: &profile::Process) -> u32 {
        let key = process.key();
        if let Some(known) = self.keys.iter().position(|known| *known == key) {
            let others = &mut self.processes[known].processes;
            *others = (*others).max(process.stands_for);
            return known as u32;
        }
        self.processes.push(Process {
            pid: process.pid,
            name: process_name(process),
            processes: process.stands_for,
        });
        self.keys.push(key);
        self.keys.len() as u32 - 1
    }
}

/// Names of data objects by address: in the kernel, and in what processes have mapped.
struct DataNames<'a> {
    symbolizer: &'a Symbolizer,
    evaluations: &'a [Evaluation],
    keys: &'a [profile::ProcessKey],
    kernel: Option<DataObjects>,
    /// Data objects of programs, by process.
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
            _ if va >= KERNEL_HALF => self
                .kernel
                .as_ref()
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
        let (symbolizer, evaluations, key) =
            (self.symbolizer, self.evaluations, &self.keys[process as usize]);
        self.programs.entry(process).or_insert_with(|| {
            let same = |p: &&profile::Process| p.key() == *key;
            let own = evaluations.iter().flat_map(|e| e.processes.iter().filter(same));
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
