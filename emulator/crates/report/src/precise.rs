//! What perf sampled of each event in the guest, judged by the event's true counts.

mod bias;
mod judge;
mod latency;
mod text;

use commit_trace::Class;
use serde::Serialize;
use truth::{Metric, Truth, UnitTotals};

use super::columns::LevelError;
use super::contended;
use super::model::Report;
use crate::perf_data::{SampleFile, SampledEvent};
use judge::TruthIndex;
pub(super) use judge::label;

/// The section's content.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PreciseReport {
    /// One for each event of each file, in the files' order.
    pub profiles: Vec<PreciseProfile>,
    /// Per count of the truth the profile that comes closest.
    pub trust: Vec<Trust>,
    /// Sampled events that are not judged.
    pub not_judged: Vec<NotJudged>,
    /// What became of the overflows of the units that sample instructions, by hart.
    pub units: Vec<UnitTotals>,
}

/// An event that is not judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotJudged {
    /// The guest's file.
    pub file: String,
    /// The event as it was asked for.
    pub event: String,
    /// Why.
    pub why: &'static str,
}

/// The samples of an event in one file.
#[derive(Clone, Debug, Serialize)]
pub struct PreciseProfile {
    /// The guest's file.
    pub file: String,
    /// The event as it was asked for.
    pub event: String,
    /// What it is compared with.
    pub metric: Metric,
    /// Events between samples, or samples per second if [`Self::is_frequency`].
    pub period: u64,
    /// The period is a frequency in Hz.
    pub is_frequency: bool,
    /// Precision that was asked for: the number of `p` modifiers.
    pub precise: u8,
    /// Samples in the programs that are judged.
    pub samples: u64,
    /// Of these the ones of which the kernel says that their address is exact.
    pub exact: u64,
    /// Samples that the kernel dropped, of all events of the file.
    pub lost: u64,
    /// Times that perf stopped an event of the file, as it sampled too often.
    pub throttled: u64,
    /// The event's true count in these programs.
    pub truth: f64,
    /// What the samples stand for.
    pub estimate: f64,
    /// Share of the samples at instructions that never had the event.
    pub wrong: f64,
    /// Error by instruction.
    pub instruction: LevelError,
    /// By basic block,
    pub block: LevelError,
    /// and by function.
    pub function: LevelError,
    /// By cache line, if the samples have addresses and the count is known by line.
    pub line: Option<LevelError>,
    /// By data object.
    pub object: Option<LevelError>,
    /// How far samples lie behind what had the event.
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

/// Skid in instructions: how many instructions behind the nearest one in the function that had the event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Skid {
    /// On average, of the samples of which it is known.
    pub mean: f64,
    /// Share of the samples of which it is known.
    pub known: f64,
}

/// Mean latencies in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// As the samples say (perf's `weight`).
    pub sampled: f64,
    /// Of all executions of the sampled instructions that the event counts.
    pub truth: f64,
}

/// A class of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassBias {
    /// The class.
    pub class: Class,
    /// Its share by the truth.
    pub truth: f64,
    /// Its share of the samples.
    pub sampled: f64,
}

/// A decode slot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SlotBias {
    /// Its number, from 0.
    pub slot: usize,
    /// Its share by the truth.
    pub truth: f64,
    /// That of the sampled instructions, each as often in a slot as it truly is.
    pub sampled: f64,
}

/// A data source, as perf calls it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SourceBias {
    /// Its name.
    pub source: String,
    /// Its share of all executions that the event counts.
    pub truth: f64,
    /// Its share of the samples.
    pub sampled: f64,
}

/// An instruction, with its share by each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PreciseRow {
    /// The function, with the distance from its start.
    pub name: String,
    /// Disassembly.
    pub text: String,
    /// By the truth.
    pub truth: f64,
    /// By the samples.
    pub sampled: f64,
    /// Latencies, if the samples have them.
    pub latency: Option<Latency>,
}

/// The profile that comes closest to a count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trust {
    /// The count.
    pub metric: Metric,
    /// Index into [`PreciseReport::profiles`].
    pub profile: usize,
}

/// Events by which perf only follows processes.
const DUMMIES: [&str; 3] = ["dummy", "dummy:u", "dummy:HG"];
/// A profile with fewer samples says nothing of whom to trust.
const ENOUGH_SAMPLES: u64 = 100;

impl Report {
    /// The same report with what samples should have said: `metric` gives what an event is compared with.
    #[must_use]
    pub fn with_truth(
        mut self,
        truth: &Truth,
        files: &[SampleFile],
        metric: &dyn Fn(&SampledEvent) -> Result<Metric, &'static str>,
        disassemble: &dyn Fn(u32, u64) -> String,
    ) -> Self {
        let index = TruthIndex::new(truth);
        let mut profiles = Vec::new();
        let mut not_judged = Vec::new();
        for file in files {
            for (at, event) in file.events.iter().enumerate() {
                let judged = metric(event).and_then(|metric| {
                    { index.judge(file, at, metric, disassemble) }
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
        self.precise = (!is_empty).then_some(PreciseReport {
            profiles,
            trust,
            not_judged,
            units: truth.units.clone(),
        });
        self.contended = contended::contended(truth, files);
        self
    }
}

/// By what a profile's error at instructions exceeds that of so many random samples, the least first.
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
