//! What the unit that samples instructions (Smpdis) would record of every execution: events and latencies together, so that whatever it
//! filters by can be judged.

use commit_trace::{AccessKind, InstId};
use profile::ProcessId;
use sampling_units::pdis::{LATENCIES, Latencies, Record, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Latency below which each number of cycles is counted by itself. Other latencies are counted in steps of a 128th to a 64th of the latency.
const BY_CYCLE: u64 = 128;
/// Cycles at which the latencies of a record saturate.
const LONGEST: u64 = 0xfff;

/// Returns the least latency that is counted together with a latency of `cycles`; the longest is counted alone.
pub fn step(cycles: u64) -> u16 {
    let cycles = cycles.min(LONGEST);
    let bits = match cycles {
        0..BY_CYCLE | LONGEST => 0,
        _ => cycles.ilog2() - 6,
    };
    (cycles >> bits << bits) as u16
}

/// Executions of an instruction whose records differ only in latencies and addresses. If the type is that of a fetch, they are fetches of the packet
/// that the instruction starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Executions {
    /// Type and events: the first word of the record ([`header`]), without counters.
    pub header: u64,
    /// Executions by each latency, in the order of `LATSEL` (total, dispatch, issue, execution, oldest); the shortest first.
    pub latencies: [Vec<LatencyCount>; LATENCIES],
}

/// Executions of a latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyCount {
    /// The least latency that is counted here, see [`step`].
    pub from: u16,
    /// Executions.
    pub times: u64,
    /// Sum of the weights that perf gives to samples of these executions, whichever latency `from` is. A weight is the execution latency, or the
    /// total latency if the instruction does not execute, in cycles.
    pub weight: u64,
}

impl LatencyCount {
    /// Adds the executions to `counts`, which are sorted by latency.
    fn add_to(self, counts: &mut Vec<Self>) {
        match counts.binary_search_by_key(&self.from, |count| count.from) {
            Ok(place) => {
                counts[place].times += self.times;
                counts[place].weight += self.weight;
            }
            Err(place) => {
                // Most instructions have one or two latencies.
                if counts.len() < 2 {
                    counts.reserve_exact(1);
                }
                counts.insert(place, self);
            }
        }
    }
}

impl Executions {
    /// Returns the number of executions, and the sum of their weights.
    pub fn all(&self) -> (u64, u64) {
        sum(self.latencies[0].iter())
    }

    /// Adds an execution to `all`, those of its instruction.
    fn add(all: &mut Vec<Self>, record: &Record, latencies: &Latencies) {
        let known = all.iter().position(|own| own.header == record.header);
        let at = known.unwrap_or_else(|| {
            // Most instructions have a single header, and there are very many instructions.
            all.reserve_exact(1);
            all.push(Self { header: record.header, ..Self::default() });
            all.len() - 1
        });
        let weight = latencies.execution.unwrap_or(latencies.total).min(LONGEST);
        let latencies = latencies.by_number();
        for (counts, cycles) in all[at].latencies.iter_mut().zip(latencies) {
            let one = LatencyCount { from: step(cycles), times: 1, weight };
            one.add_to(counts);
        }
    }

    /// Adds executions of the same instruction in other processes.
    pub(crate) fn merge(all: &mut Vec<Self>, others: Vec<Self>) {
        for other in others {
            match all.iter_mut().find(|own| own.header == other.header) {
                None => all.push(other),
                Some(own) => {
                    for (counts, others) in own.latencies.iter_mut().zip(other.latencies) {
                        others.iter().for_each(|other| other.add_to(counts));
                    }
                }
            }
        }
    }
}

/// The record of an instruction until the next instruction is known, which tells whether a branch was taken.
#[derive(Debug)]
pub(crate) struct OpenRecord {
    /// The instruction, and the process that executed it; `None`: kernel or firmware.
    pub inst: InstId,
    pub process: Option<ProcessId>,
    pub record: Record,
    pub latencies: Latencies,
    /// Address right behind the instruction, if it is a control transfer.
    pub following: Option<u64>,
}

impl OpenRecord {
    /// Adds the record to `all`; the instruction at `target` comes next, if one does.
    pub(crate) fn close(mut self, target: Option<u64>, all: &mut Vec<Executions>) {
        if let (Some(following), Some(target)) = (self.following, target) {
            self.record.transferred(target, following, None);
        }
        Executions::add(all, &self.record, &self.latencies);
    }
}

/// Adds the fetch of a packet to `all`, the records of the packet's first instruction.
pub(crate) fn add_fetch(all: &mut Vec<Executions>, (record, latencies): (Record, Latencies)) {
    Executions::add(all, &record, &latencies);
}

/// What the unit that samples instructions selects, and its filter lets pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, JsonSchema, Serialize, Deserialize)]
pub struct RecordFilter {
    /// Instructions that are selected: 0 all, 1 loads, 2 stores, 3 both, 4 control transfers (`SEL`).
    pub select: u8,
    /// Whether fetches are selected instead of instructions.
    pub fetch: bool,
    /// Mask of the header's bits that are compared (`spdisevmask`).
    #[serde(with = "crate::hex")]
    #[schemars(with = "crate::schema::Hex")]
    pub mask: u64,
    /// Values that the compared bits have to have (`spdisevmatch`).
    #[serde(with = "crate::hex")]
    #[schemars(with = "crate::schema::Hex")]
    pub matches: u64,
    /// Number of the latency that is compared (`LATSEL`).
    pub latency: u8,
    /// Cycles that the latency is compared with.
    pub threshold: u16,
    /// Whether latencies below the threshold pass, instead of the others.
    pub below: bool,
}

impl RecordFilter {
    /// Returns whether the truth can tell exactly what passes: no step of latencies has the threshold in its middle.
    pub fn is_exact(&self) -> bool {
        step(self.threshold.into()) == self.threshold
    }

    /// Returns whether a record with this first word is selected and has the events, whatever its latencies are.
    pub fn takes(&self, header: u64) -> bool {
        let kind = header & header::TYPE;
        let is = |access: AccessKind| kind == access as u64 || kind == AccessKind::Atomic as u64;
        let selected = match self.select {
            _ if self.fetch || kind == header::TYPE_FETCH => {
                self.fetch && kind == header::TYPE_FETCH
            }
            0 => true,
            1 => is(AccessKind::Load),
            2 => is(AccessKind::Store),
            3 => is(AccessKind::Load) || is(AccessKind::Store),
            _ => kind == header::TYPE_TRANSFER,
        };
        selected && (self.matches ^ header) & self.mask == 0
    }

    /// Returns how many of `executions` pass, and the sum of their weights.
    pub fn passing(&self, executions: &Executions) -> (u64, u64) {
        if !self.takes(executions.header) {
            return (0, 0);
        }
        let counts = executions.latencies[usize::from(self.latency).min(LATENCIES - 1)].iter();
        let passing = counts.filter(|count| (count.from >= self.threshold) != self.below);
        sum(passing)
    }
}

/// Returns the sums of the executions and of their weights.
fn sum<'a>(counts: impl Iterator<Item = &'a LatencyCount>) -> (u64, u64) {
    counts.fold((0, 0), |(times, weight), count| (times + count.times, weight + count.weight))
}
