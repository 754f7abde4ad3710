//! What the unit that samples instructions (Smpdis) would record of every execution: events and latencies together, so that whatever it
//! filters by can be judged.

use commit_trace::{AccessKind, InstId};
use profile::ProcessId;
use sampling_units::pdis::{LATENCIES, Latencies, Record, header};
use serde::{Deserialize, Serialize};

/// Latencies below are told apart by the cycle. Longer ones are by a 64th to a 128th of what they are.
const BY_CYCLE: u64 = 128;
/// Latencies of a record saturate there.
const LONGEST: u64 = 0xfff;

/// The least latency that is counted with this one; the longest is alone.
pub fn step(cycles: u64) -> u16 {
    let cycles = cycles.min(LONGEST);
    let bits = match cycles {
        0..BY_CYCLE | LONGEST => 0,
        _ => cycles.ilog2() - 6,
    };
    (cycles >> bits << bits) as u16
}

/// Executions of an instruction whose records say the same but for latencies and addresses; or, if the type is that of a fetch, fetches
/// of the packet that it starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Executions {
    /// Type and events: the first word of the record ([`header`]), without counters.
    pub header: u64,
    /// By latency, in the order of `LATSEL` (total, dispatch, issue, execution, oldest), the shortest first.
    pub latencies: [Vec<LatencyCount>; LATENCIES],
}

/// Executions of a latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyCount {
    /// The least latency that is counted here, see [`step`].
    pub from: u16,
    /// Executions.
    pub times: u64,
    /// Cycles that perf gives as the weight of their samples, whichever latency `from` is: of the execution, or all of what does not
    /// execute.
    pub weight: u64,
}

impl LatencyCount {
    /// Adds it to those that are there, which are sorted.
    fn add_to(self, counts: &mut Vec<Self>) {
        match counts.binary_search_by_key(&self.from, |count| count.from) {
            Ok(place) => {
                counts[place].times += self.times;
                counts[place].weight += self.weight;
            }
            Err(place) => {
                // Most have one or two.
                if counts.len() < 2 {
                    counts.reserve_exact(1);
                }
                counts.insert(place, self);
            }
        }
    }
}

impl Executions {
    /// How many they are, and their weights.
    pub fn all(&self) -> (u64, u64) {
        sum(self.latencies[0].iter())
    }

    /// Adds one to those of an instruction.
    fn add(all: &mut Vec<Self>, record: &Record, latencies: &Latencies) {
        let known = all.iter().position(|own| own.header == record.header);
        let at = known.unwrap_or_else(|| {
            // Most instructions have one, and there are very many instructions.
            all.reserve_exact(1);
            all.push(Self {
                header: record.header,
                ..Self::default()
            });
            all.len() - 1
        });
        let weight = latencies.execution.unwrap_or(latencies.total).min(LONGEST);
        let latencies = latencies.by_number();
        for (counts, cycles) in all[at].latencies.iter_mut().zip(latencies) {
            let one = LatencyCount {
                from: step(cycles),
                times: 1,
                weight,
            };
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

/// The record of an instruction, until it is known what comes next: a branch that is not taken is one only then.
#[derive(Debug)]
pub(crate) struct OpenRecord {
    /// The instruction, and the process that executed it; `None`: kernel or firmware.
    pub inst: InstId,
    pub process: Option<ProcessId>,
    pub record: Record,
    pub latencies: Latencies,
    /// Address of the instruction behind it, if it is a control transfer.
    pub following: Option<u64>,
}

impl OpenRecord {
    /// The instruction at `target` comes next, if one does.
    pub fn close(mut self, target: Option<u64>, all: &mut Vec<Executions>) {
        if let (Some(following), Some(target)) = (self.following, target) {
            self.record.transferred(target, following, None);
        }
        Executions::add(all, &self.record, &self.latencies);
    }
}

/// Adds the fetch of a packet to what its first instruction has.
pub(crate) fn add_fetch(all: &mut Vec<Executions>, (record, latencies): (Record, Latencies)) {
    Executions::add(all, &record, &latencies);
}

/// What the unit selects and lets pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecordFilter {
    /// Instructions: 0 all, 1 loads, 2 stores, 3 both, 4 control transfers (`SEL`).
    pub select: u8,
    /// Fetches instead.
    pub fetch: bool,
    /// Bits of the header that are compared (`spdisevmask`),
    #[serde(with = "crate::hex")]
    pub mask: u64,
    /// and what they have to be (`spdisevmatch`).
    #[serde(with = "crate::hex")]
    pub matches: u64,
    /// Which latency is compared (`LATSEL`),
    pub latency: u8,
    /// and with how many cycles.
    pub threshold: u16,
    /// Latencies below that pass, not the others.
    pub below: bool,
}

impl RecordFilter {
    /// The truth tells what passes from what does not.
    pub fn is_exact(&self) -> bool {
        step(self.threshold.into()) == self.threshold
    }

    /// A record with this first word passes, whatever its latencies are.
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

    /// Of those executions how many pass, and their weights.
    pub fn passing(&self, executions: &Executions) -> (u64, u64) {
        if !self.takes(executions.header) {
            return (0, 0);
        }
        let counts = executions.latencies[usize::from(self.latency).min(LATENCIES - 1)].iter();
        let passing = counts.filter(|count| (count.from >= self.threshold) != self.below);
        sum(passing)
    }
}

/// How often, and the weights.
fn sum<'a>(counts: impl Iterator<Item = &'a LatencyCount>) -> (u64, u64) {
    counts.fold((0, 0), |(times, weight), count| {
        (times + count.times, weight + count.weight)
    })
}
