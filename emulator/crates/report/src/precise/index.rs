//! The true counts and the samples of an event, by instruction.

use commit_trace::{InstId, StaticInfo};
use guest_samples::{Sample, SampleFile};
use profile::{ErrorSums, ErrorTotals, OracleWeights};
use rustc_hash::FxHashMap;
use truth::{Instruction, Truth};

use crate::blocks::leaders;
use crate::columns::LevelError;

/// Least share of an event's samples for a process to be judged. perf's own process, before it starts the program, has less.
const NOTICEABLE: f64 = 0.05;
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
    pub(super) blocks: Vec<u64>,
    by_address: FxHashMap<(Option<u32>, u64), u32>,
}

/// The programs that are compared.
pub(super) struct Scope {
    /// Whether each process of the truth is compared.
    processes: Vec<bool>,
    kernel: bool,
}

impl Scope {
    pub(crate) fn has(&self, process: Option<u32>) -> bool {
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
    /// Number of samples.
    pub samples: u64,
}

/// A sample, and its row if the truth has its instruction.
pub(super) type Placed<'a> = (&'a Sample, Option<u32>);

impl Sides {
    /// Returns the weight of all samples.
    pub(crate) fn all(&self) -> u64 {
        self.sampled.iter().sum::<u64>() + self.unmatched
    }

    /// Returns the error of the samples against the truth.
    pub(crate) fn error(&self) -> LevelError {
        let whole = ErrorTotals {
            oracle: self.truth.iter().sum(),
            profile: self.all(),
            samples: self.samples as f64,
        };
        let mut sums = ErrorSums::default();
        sums.add(&whole, &OracleWeights::new(self.truth.clone()), &self.sampled);
        LevelError::of(&sums, &whole)
    }

    /// Sums the weights into coarser symbols: rows with the same `key` become one.
    pub(crate) fn by<K: std::hash::Hash + Eq>(&self, key: impl Fn(usize) -> K) -> Self {
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
    pub(crate) fn new(truth: &'a Truth) -> Self {
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
    pub(crate) fn scope(&self, file: &SampleFile, event: usize) -> Scope {
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
    pub(crate) fn row(&self, sample: &Sample, scope: &Scope) -> Result<u32, bool> {
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
