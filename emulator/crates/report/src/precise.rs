//! What perf sampled of each event in the guest, judged by the event's true counts.

mod bias;
mod index;
mod judge;
mod latency;
pub(crate) mod rules;
mod text;

use commit_trace::Class;
use guest_samples::{SampleFile, SampledEvent};
use schemars::JsonSchema;
use serde::Serialize;
use truth::{Metric, Truth, UnitTotals};

use super::columns::LevelError;
use index::TruthIndex;

/// The section's content.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct PreciseReport {
    /// Profiles, one for each event of each file, in the files' order.
    pub profiles: Vec<PreciseProfile>,
    /// For each true count, the profile that comes closest to it.
    pub trust: Vec<Trust>,
    /// Sampled events that are not judged.
    pub not_judged: Vec<NotJudged>,
    /// What became of the overflows of the units that sample instructions, by hart.
    pub units: Vec<UnitTotals>,
}

/// An event that is not judged.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct NotJudged {
    /// The guest's file.
    pub file: String,
    /// The event as it was asked for.
    pub event: String,
    /// Why the event is not judged.
    pub why: &'static str,
}

/// The samples of an event in one file.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct PreciseProfile {
    /// The guest's file.
    pub file: String,
    /// The event as it was asked for.
    pub event: String,
    /// The true count that the samples are compared with.
    pub metric: Metric,
    /// Events between samples, or samples per second if [`Self::is_frequency`].
    pub period: u64,
    /// True if `period` is a frequency in Hz.
    pub is_frequency: bool,
    /// Precision that was asked for: the number of `p` modifiers.
    pub precise: u8,
    /// Samples in the programs that are judged.
    pub samples: u64,
    /// Samples of these whose address is exact, as the kernel says.
    pub exact: u64,
    /// Samples that the kernel dropped, of all events of the file.
    pub lost: u64,
    /// Times that perf stopped an event of the file, as it sampled too often.
    pub throttled: u64,
    /// The event's true count in these programs.
    pub truth: f64,
    /// The count that the samples stand for.
    pub estimate: f64,
    /// Share of the samples at instructions that never had the event.
    pub wrong: f64,
    /// Error by instruction.
    pub instruction: LevelError,
    /// Error by basic block.
    pub block: LevelError,
    /// Error by function.
    pub function: LevelError,
    /// Error by cache line, if the samples have addresses and the count is known by line.
    pub line: Option<LevelError>,
    /// Error by data object.
    pub object: Option<LevelError>,
    /// Distance of samples behind the instructions that had the event.
    pub skid: Option<Skid>,
    /// Latencies as sampled, and the true ones of the same instructions.
    pub latency: Option<Latency>,
    /// Shares by data source, those of the truth first.
    pub sources: Vec<SourceBias>,
    /// Shares by class of instruction.
    pub classes: Vec<ClassBias>,
    /// Shares by decode slot.
    pub slots: Vec<SlotBias>,
    /// Instructions that the truth or the samples give most to.
    pub instructions: Vec<PreciseRow>,
}

/// Skid of samples: how many instructions they are behind the nearest one in the function that had the event.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Skid {
    /// Mean skid in instructions, of the samples whose skid is known.
    pub mean: f64,
    /// Share of the samples whose skid is known.
    pub known: f64,
}

/// Mean latencies in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Latency {
    /// Mean of the samples' latencies (perf's `weight`).
    pub sampled: f64,
    /// Mean true latency of all executions of the sampled instructions that the event counts.
    pub truth: f64,
}

/// A class of instructions.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ClassBias {
    /// The class.
    #[schemars(with = "truth::ClassName")]
    pub class: Class,
    /// The class's share of the event's true count.
    pub truth: f64,
    /// The class's share of the samples.
    pub sampled: f64,
}

/// A decode slot.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct SlotBias {
    /// The slot's number, from 0.
    pub slot: usize,
    /// The slot's share of the event's true count.
    pub truth: f64,
    /// The slot's share of the samples; an instruction's samples count for each slot as often as it was decoded there.
    pub sampled: f64,
}

/// A data source, as perf calls it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct SourceBias {
    /// The data source's name.
    pub source: String,
    /// The data source's share of all executions that the event counts.
    pub truth: f64,
    /// The data source's share of the samples.
    pub sampled: f64,
}

/// An instruction, with its share by the truth and by the samples.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PreciseRow {
    /// The function, with the distance from its start.
    pub name: String,
    /// Disassembly.
    pub text: String,
    /// The instruction's share of the event's true count.
    pub truth: f64,
    /// The instruction's share of the samples.
    pub sampled: f64,
    /// Mean latencies of the instruction, if the samples have latencies.
    pub latency: Option<Latency>,
}

/// The profile that comes closest to a true count.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Trust {
    /// The true count.
    pub metric: Metric,
    /// Index into [`PreciseReport::profiles`].
    pub profile: usize,
}

/// Names of events that perf uses only to follow processes.
const DUMMIES: [&str; 3] = ["dummy", "dummy:u", "dummy:HG"];
/// Least number of samples of a profile that may be the one to trust.
const ENOUGH_SAMPLES: u64 = 100;

/// Returns what the samples of `files` should have said, by `truth`; `None` if no event was sampled. `metric` gives the count that an
/// event is compared with.
pub(super) fn precise(
    truth: &Truth,
    files: &[SampleFile],
    metric: &dyn Fn(&SampledEvent) -> Result<Metric, &'static str>,
    disassemble: &dyn Fn(u32, u64) -> String,
) -> Option<PreciseReport> {
    let index = TruthIndex::new(truth);
    let mut profiles = Vec::new();
    let mut not_judged = Vec::new();
    for file in files {
        for (at, event) in file.events.iter().enumerate() {
            let judged = metric(event).and_then(|metric| {
                index
                    .judge(file, at, metric, disassemble)
                    .ok_or("nothing to compare: no samples in the region, or it never occurred")
            });
            match judged {
                Ok(judged) => profiles.push(judged),
                Err(_) if DUMMIES.contains(&event.name.as_str()) => {}
                Err(why) => not_judged.push(NotJudged {
                    file: file.file.clone(),
                    event: event.name.clone(),
                    why,
                }),
            }
        }
    }
    let trust = trust(&profiles);
    let is_empty = profiles.is_empty() && not_judged.is_empty();
    (!is_empty).then(|| PreciseReport { profiles, trust, not_judged, units: truth.units.clone() })
}

/// Returns, for each count, the profile whose error by instruction exceeds the error of the same number of random samples by the least.
fn trust(profiles: &[PreciseProfile]) -> Vec<Trust> {
    let mut out: Vec<Trust> = Vec::new();
    let excess = |at: usize| {
        let error = profiles[at].instruction;
        error.error - error.sampling
    };
    let enough = |at: &usize| profiles[*at].samples >= ENOUGH_SAMPLES;
    for profile in (0..profiles.len()).filter(enough) {
        let metric = profiles[profile].metric;
        match out.iter_mut().find(|known| known.metric == metric) {
            Some(known) if excess(profile) < excess(known.profile) => known.profile = profile,
            Some(_) => {}
            None => out.push(Trust { metric, profile }),
        }
    }
    out
}

#[cfg(test)]
mod tests;
