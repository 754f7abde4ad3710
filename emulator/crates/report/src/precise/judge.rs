//! The comparison of an event's samples with its true counts.

use commit_trace::{InstId, StaticInfo};
use rustc_hash::FxHashMap;
use truth::{Instruction, Metric, Truth};

use super::latency::Latencies;
use super::{PreciseProfile, Skid};
use crate::blocks::leaders;
use crate::columns::LevelError;
use crate::error::{Sums, Truth as Weights, Whole};
use crate::perf_data::{Sample, SampleFile};

/// Least share of an event's samples for a process to be judged. perf's own process, before it starts the program, has less.
const NOTICEABLE: f64 = 0.05;
/// Units per event: counts are compared as whole numbers of units, as the Oracle splits a cycle into so many.
const UNITS: f64 = 840.0;
/// Addresses from here up are the kernel's.
const KERNEL_HALF: u64 = 1 << 63;

/// The true counts of all harts together, indexed by the process and the address that a sample has.
pub(super) struct TruthIndex<'a> {
    pub(super) truth: &'a Truth,
    /// One instruction for each process and address; other instructions with the same process and address count with it.
    pub(super) rows: Vec<&'a Instruction>,
    /// Row of each of the truth's instructions.
    pub(super) row_of: Vec<u32>,
    /// Address of each row's basic block.
    blocks: Vec<u64>,
    by_address: FxHashMap<(Option<u32>, u64), u32>,
}

/// The programs that are compared.
pub(super) struct Scope {
    /// Whether each process of the truth is compared.
    processes: Vec<bool>,
    kernel: bool,
}

impl Scope {
    pub fn has(&self, process: Option<u32>) -> bool {
        match process {
            Some(process) => self.processes[process as usize],
            None => self.kernel,
        }
    }
}

/// Weights of symbols by the truth and by the samples.
pub(super) struct Sides {
    pub truth: Vec<u64>,
    pub sampled: Vec<u64>,
    /// Weight of samples at instructions that the truth does not have.
    pub unmatched: u64,
    samples: u64,
}

/// A sample, and its row if the truth has its instruction.
pub(super) type Placed<'a> = (&'a Sample, Option<u32>);

impl Sides {
    /// Returns the weight of all samples.
    pub fn all(&self) -> u64 {
        self.sampled.iter().sum::<u64>() + self.unmatched
    }

    fn error(&self) -> LevelError {
        let whole = Whole {
            oracle: self.truth.iter().sum(),
            profile: self.all(),
            samples: self.samples as f64,
        };
        let mut sums = Sums::default();
        sums.add(&whole, &Weights::new(self.truth.clone()), &self.sampled);
        sums.error(&whole)
    }

    /// Sums the weights into coarser symbols: rows with the same `key` become one.
    fn by<K: std::hash::Hash + Eq>(&self, key: impl Fn(usize) -> K) -> Self {
        let mut known = FxHashMap::default();
        let mut out = Self { truth: Vec::new(), sampled: Vec::new(), ..*self };
        for (at, (truth, sampled)) in self.truth.iter().zip(&self.sampled).enumerate() {
            let next = out.truth.len();
            let symbol = *known.entry(key(at)).or_insert(next);
            if symbol == next {
                out.truth.push(0);
                out.sampled.push(0);
            }
            out.truth[symbol] += truth;
            out.sampled[symbol] += sampled;
        }
        out
    }
}

impl<'a> TruthIndex<'a> {
    pub fn new(truth: &'a Truth) -> Self {
        let mut rows: Vec<&Instruction> = Vec::new();
        let mut by_address = FxHashMap::default();
        let row_of = truth
            .instructions
            .iter()
            .map(|instruction| {
                let key = (instruction.process, instruction.pc);
                *by_address.entry(key).or_insert_with(|| {
                    rows.push(instruction);
                    rows.len() as u32 - 1
                })
            })
            .collect();
        Self { truth, blocks: leaders(&static_info(&rows)), rows, row_of, by_address }
    }

    /// Returns the programs that have enough of the event's samples to be judged.
    fn scope(&self, file: &SampleFile, event: usize) -> Scope {
        let own = || file.samples.iter().filter(|s| s.event == event);
        let all = own().count().max(1) as f64;
        let is_kernel = |sample: &&Sample| sample.ip.is_some_and(|ip| ip >= KERNEL_HALF);
        let share = |pid: Option<u32>| {
            let count = own().filter(|s| s.pid == pid && !is_kernel(s)).count();
            count as f64 / all
        };
        let sampled = |pid: Option<u32>| pid.is_some() && share(pid) >= NOTICEABLE;
        Scope {
            processes: self.truth.processes.iter().map(|process| sampled(process.pid)).collect(),
            kernel: file.events[event].covers[1]
                && own().filter(is_kernel).count() as f64 / all >= NOTICEABLE,
        }
    }

    /// Returns the row of a sample: that of the last program with its process id that has one. `Err(true)` if none has
    /// one, `Err(false)` if the sample is not in the scope.
    fn row(&self, sample: &Sample, scope: &Scope) -> Result<u32, bool> {
        let ip = sample.ip.ok_or(true)?;
        let at = |process| self.by_address.get(&(process, ip)).copied();
        if ip >= KERNEL_HALF {
            return match scope.kernel {
                true => at(None).ok_or(true),
                false => Err(false),
            };
        }
        let processes = self.truth.processes.iter().enumerate().rev();
        let mut own = processes
            .filter(|(number, process)| process.pid == sample.pid && scope.processes[*number])
            .map(|(number, _)| number as u32)
            .peekable();
        own.peek().ok_or(false)?;
        own.find_map(|process| at(Some(process))).ok_or(true)
    }

    /// Compares the samples of an event with its true counts; `None` if there is nothing to compare.
    pub fn judge(
        &self,
        file: &SampleFile,
        event: usize,
        metric: Metric,
        disassemble: &dyn Fn(u32, u64) -> String,
    ) -> Option<PreciseProfile> {
        let scope = self.scope(file, event);
        let mut counts = vec![0.0; self.rows.len()];
        for (instruction, row) in self.truth.instructions.iter().zip(&self.row_of) {
            if scope.has(instruction.process) {
                counts[*row as usize] += metric.of(instruction);
            }
        }
        let mut sides = Sides {
            truth: counts.iter().map(|n| (n * UNITS).round() as u64).collect(),
            sampled: vec![0; self.rows.len()],
            unmatched: 0,
            samples: 0,
        };
        let mut own: Vec<Placed<'_>> = Vec::new();
        let (mut exact, mut wrong) = (0, 0);
        for sample in file.samples.iter().filter(|s| s.event == event) {
            let weight = sample.period.unwrap_or(1);
            let row = match self.row(sample, &scope) {
                Ok(row) => Some(row),
                Err(true) => None,
                Err(false) => continue,
            };
            match row {
                Some(row) => sides.sampled[row as usize] += weight,
                None => sides.unmatched += weight,
            }
            wrong += u64::from(row.is_none_or(|row| sides.truth[row as usize] == 0));
            exact += u64::from(sample.is_exact);
            own.push((sample, row));
        }
        sides.samples = own.len() as u64;
        let truth: f64 = counts.iter().sum();
        if own.is_empty() || truth == 0.0 {
            return None;
        }
        let about = &file.events[event];
        let function = |row: usize| (self.rows[row].process, self.rows[row].function);
        // A function's start begins a block.
        let by_block = sides.by(|row| (function(row), self.blocks[row]));
        let by_function = sides.by(function);
        let latencies = Latencies::new(self, metric, &scope, &own);
        let lines = self.lines(&own, metric, &scope);
        Some(PreciseProfile {
            file: file.file.clone(),
            event: about.name.clone(),
            metric,
            period: about.period,
            is_frequency: about.is_frequency,
            precise: about.precise,
            samples: sides.samples,
            exact,
            lost: file.lost,
            throttled: file.throttled,
            truth,
            estimate: sides.all() as f64,
            wrong: wrong as f64 / sides.samples as f64,
            instruction: sides.error(),
            block: by_block.error(),
            function: by_function.error(),
            line: lines.as_ref().map(Sides::error),
            object: lines.map(|lines| lines.by(|at| self.object(at)).error()),
            skid: self.skid(&sides, &scope),
            latency: latencies.whole(),
            sources: latencies.sources(),
            classes: self.classes(&sides),
            slots: self.slots(&sides),
            instructions: self.largest(&sides, &latencies, disassemble),
        })
    }

    /// Returns the weights by cache line, of the samples that have addresses; `None` if no sample has one, or the metric is not
    /// known by line.
    fn lines(&self, own: &[Placed<'_>], metric: Metric, scope: &Scope) -> Option<Sides> {
        let lines = &self.truth.lines;
        let size = self.truth.line_bytes.max(1);
        let mut by_pa = FxHashMap::default();
        let mut by_va = FxHashMap::default();
        let mut sides = Sides {
            truth: vec![0; lines.len()],
            sampled: vec![0; lines.len()],
            unmatched: 0,
            samples: 0,
        };
        for (at, line) in lines.iter().enumerate() {
            for user in line.uses.iter().filter(|user| scope.has(user.process)) {
                sides.truth[at] += metric.of_line(&user.counts)?;
                by_va.insert(user.counts.va / size, at);
                by_pa.insert(line.pa / size, at);
            }
        }
        for (sample, _) in own {
            let known = |address: Option<u64>| address.filter(|address| *address != 0);
            let (pa, va) = (known(sample.phys_addr), known(sample.addr));
            let line = match (pa, va) {
                (Some(pa), _) => by_pa.get(&(pa / size)),
                (None, Some(va)) => by_va.get(&(va / size)),
                (None, None) => continue,
            };
            sides.samples += 1;
            let weight = sample.period.unwrap_or(1);
            match line {
                Some(line) => sides.sampled[*line] += weight,
                None => sides.unmatched += weight,
            }
        }
        (sides.samples > 0).then_some(sides)
    }

    /// Returns the data object of a line; a line without one stands for itself.
    fn object(&self, line: usize) -> Result<&str, usize> {
        let name = self.truth.lines[line].object.split("+0x").next();
        name.filter(|name| !name.is_empty()).ok_or(line)
    }

    /// Returns the skid of samples: their distance, in executed instructions of the function, from the nearest instruction
    /// before them that has the event. `None` if most instructions have the event.
    fn skid(&self, sides: &Sides, scope: &Scope) -> Option<Skid> {
        let mut order: Vec<usize> =
            (0..self.rows.len()).filter(|row| scope.has(self.rows[*row].process)).collect();
        let incurs = |row: &usize| sides.truth[*row] > 0;
        if 2 * order.iter().filter(|row| incurs(row)).count() > order.len() {
            return None;
        }
        let function = |row: usize| (self.rows[row].process, self.rows[row].function);
        order.sort_by_key(|row| (function(*row), self.rows[*row].pc));
        let (mut known, mut distances) = (0u64, 0u64);
        // Distance from the last one that has the event.
        let mut distance: Option<u64> = None;
        let mut before = None;
        for row in order {
            if before != Some(function(row)) {
                distance = None;
            }
            before = Some(function(row));
            distance = match incurs(&row) {
                true => Some(0),
                false => distance.map(|distance| distance + 1),
            };
            if let Some(distance) = distance {
                known += sides.sampled[row];
                distances += distance * sides.sampled[row];
            }
        }
        let all = sides.all();
        (known > 0).then(|| Skid {
            mean: distances as f64 / known as f64,
            known: known as f64 / all as f64,
        })
    }
}

/// Returns what is known of the instructions to tell basic blocks apart.
fn static_info(rows: &[&Instruction]) -> Vec<StaticInfo> {
    let info = |(number, row): (u32, &&Instruction)| StaticInfo {
        id: InstId(number),
        space: row.process.map_or(0, |process| process + 1),
        pc: row.pc,
        raw: row.raw,
        len: if row.raw & 3 == 3 { 4 } else { 2 },
        privilege: row.privilege,
        class: row.class,
        target: row.target,
    };
    (0..).zip(rows).map(info).collect()
}

/// Returns the instruction's function, with the distance from its start.
pub(crate) fn label(truth: &Truth, instruction: &Instruction) -> String {
    let name = truth.functions.get(instruction.function as usize).map_or("?", |name| name);
    match instruction.offset {
        0 => name.to_owned(),
        offset => format!("{name}+{offset:#x}"),
    }
}
