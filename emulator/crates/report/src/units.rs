//! The units of a sampled region, over the region: where cycles for each instruction differ, and where the estimate is the least certain.

pub(crate) mod chart;
pub(crate) mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write;

use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Serialize;

use super::model::Common;
use super::options::Options;
use super::section::Section;
use super::widths::{FULL_BAR, bar, count, fixed};

/// Stretches that the region is divided into.
const STRETCHES: usize = 50;
/// Phases that the text lists at most.
const LISTED_PHASES: usize = 20;

/// The units of a sampled region, each by its number.
#[derive(Clone, Debug, Default)]
pub struct UnitInputs {
    /// Instructions of the region.
    pub instructions: u64,
    /// Instructions of the region before each unit.
    pub at: Vec<u64>,
    /// Instructions of each unit.
    pub unit_instructions: Vec<u64>,
    /// Cycles of each unit in which the hart was awake.
    pub cycles: Vec<u64>,
    /// Weight of each unit: how much of the region it stands for, in relation to other units; empty if all weights are equal.
    pub weights: Vec<u32>,
    /// The phase or stratum that each unit was chosen for; empty without any.
    pub phases: Vec<u32>,
    /// Phase of each interval of the region, in order; empty if that is not known.
    pub phases_over_region: Vec<u32>,
    /// Whether the variance between units tells how far the estimate may be off by chance.
    pub tell_chance: bool,
}

/// The units of a sampled region.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct UnitReport {
    /// Instructions of the region.
    pub instructions: u64,
    /// Number of units.
    pub units: usize,
    /// Cycles for each instruction of the region, as the units say.
    pub cpi: f64,
    /// The region in stretches of equal length, in order.
    pub stretches: Vec<UnitStretch>,
    /// Phases or strata that units were chosen for, if they were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<UnitPhase>,
    /// The region as intervals of equal length, each with its phase, in order: runs of intervals that are of one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub over_region: Vec<PhaseRun>,
    /// The units, for the chart.
    #[serde(skip)]
    dots: Vec<UnitDot>,
}

/// Units of which a part of the region has several.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct UnitSums {
    /// Number of units.
    pub units: usize,
    /// Cycles for each instruction of the units; `None` without units.
    pub cpi: Option<f64>,
    /// Cycles for each instruction of the unit with the fewest; `None` without units.
    pub least: Option<f64>,
    /// Cycles for each instruction of the unit with the most; `None` without units.
    pub most: Option<f64>,
    /// Share of the estimate's variance that comes from these units; `None` if units say nothing of chance.
    pub variance: Option<f64>,
}

/// A stretch of the region.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct UnitStretch {
    /// Instructions of the region before the stretch.
    pub at: u64,
    /// Instructions of the stretch.
    pub instructions: u64,
    /// The units that begin in the stretch.
    #[serde(flatten)]
    pub sums: UnitSums,
}

/// A phase or stratum of the region.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct UnitPhase {
    /// Number of the phase.
    pub number: u32,
    /// Share of the region's instructions that the phase's units stand for.
    pub share: f64,
    /// Instructions of the region before the phase's first unit.
    pub at: u64,
    /// The units that were chosen for the phase.
    #[serde(flatten)]
    pub sums: UnitSums,
}

/// Intervals of the region that follow each other and are of one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct PhaseRun {
    /// Number of the phase.
    pub phase: u32,
    /// Number of intervals.
    pub intervals: usize,
}

/// A unit in the chart.
#[derive(Clone, Copy, Debug)]
struct UnitDot {
    at: u64,
    cpi: f64,
    /// Part of the region that the unit stands for, relative to the mean of all.
    weight: f64,
    phase: u32,
}

/// A unit with what it adds to sums.
#[derive(Clone, Copy)]
struct UnitPart {
    at: u64,
    phase: u32,
    weight: f64,
    cycles: f64,
    instructions: f64,
    /// What the unit adds to the estimate's variance.
    variance: f64,
}

impl UnitReport {
    /// Returns the report of a region's units; `None` without a unit that has instructions.
    pub fn new(inputs: &UnitInputs) -> Option<Self> {
        let parts = parts(inputs);
        let sum = |of: fn(&UnitPart) -> f64| parts.iter().map(of).sum::<f64>();
        let cpi =
            sum(|unit| unit.weight * unit.cycles) / sum(|unit| unit.weight * unit.instructions);
        if !cpi.is_finite() {
            return None;
        }
        let region = inputs.instructions.max(parts.last().map_or(1, |unit| unit.at + 1));
        let whole = inputs.tell_chance.then(|| sum(|unit| unit.variance));
        let sums = |units: &[UnitPart]| UnitSums::of(units, whole);
        let count = STRETCHES.min(parts.len()).max(1);
        let edge = |number: usize| (u128::from(region) * number as u128 / count as u128) as u64;
        let stretch = |number: usize| {
            let (at, end) = (edge(number), edge(number + 1));
            let from = parts.partition_point(|unit| unit.at < at);
            let to = parts.partition_point(|unit| unit.at < end);
            UnitStretch { at, instructions: end - at, sums: sums(&parts[from..to]) }
        };
        let mut by_phase: BTreeMap<u32, Vec<UnitPart>> = BTreeMap::new();
        if !inputs.phases.is_empty() {
            parts.iter().for_each(|unit| by_phase.entry(unit.phase).or_default().push(*unit));
        }
        let stands_for = |units: &[UnitPart]| {
            units.iter().map(|unit| unit.weight * unit.instructions).sum::<f64>()
        };
        let all = stands_for(&parts);
        let mut phases: Vec<UnitPhase> = by_phase
            .into_iter()
            .map(|(number, units)| UnitPhase {
                number,
                share: stands_for(&units) / all,
                at: units.first().map_or(0, |unit| unit.at),
                sums: sums(&units),
            })
            .collect();
        phases.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.number.cmp(&b.number)));
        let mean_weight = sum(|unit| unit.weight) / parts.len() as f64;
        let mark = |unit: &UnitPart| UnitDot {
            at: unit.at,
            cpi: unit.cycles / unit.instructions,
            weight: unit.weight / mean_weight,
            phase: unit.phase,
        };
        Some(Self {
            instructions: region,
            units: parts.len(),
            cpi,
            stretches: (0..count).map(stretch).collect(),
            phases,
            over_region: runs(&inputs.phases_over_region),
            dots: parts.iter().map(mark).collect(),
        })
    }

    /// Returns the shortest run of stretches that has half of the variance, if that is known and they are at most a quarter of the region.
    fn weakest(&self) -> Option<&[UnitStretch]> {
        let variance =
            |of: &[UnitStretch]| of.iter().filter_map(|of| of.sums.variance).sum::<f64>();
        let lengths = 1..=self.stretches.len() / 4;
        { lengths }.find_map(|length| {
            let best = self.stretches.windows(length);
            let best = best.max_by(|a, b| variance(a).total_cmp(&variance(b)))?;
            (variance(best) >= 0.5).then_some(best)
        })
    }

    /// Says where the estimate is the least certain, if that is in a part of the region.
    fn weakest_in_words(&self) -> Option<String> {
        let weakest = self.weakest()?;
        let (first, last) = (weakest.first()?, weakest.last()?);
        let end = last.at + last.instructions;
        let sums = || weakest.iter().map(|stretch| &stretch.sums);
        let variance: f64 = sums().filter_map(|sums| sums.variance).sum();
        let least = sums().filter_map(|sums| sums.least).fold(f64::INFINITY, f64::min);
        let most = sums().filter_map(|sums| sums.most).fold(0.0, f64::max);
        Some(format!(
            "The estimate is the least certain from {:.1} M to {:.1} M instructions: {:.1} % of the region, {:.0} % of the variance, {least:.2} to {most:.2} cycles for each instruction.",
            first.at as f64 / 1e6,
            end as f64 / 1e6,
            100.0 * (end - first.at) as f64 / self.instructions as f64,
            100.0 * variance,
        ))
    }
}

/// Returns runs of equal phases.
fn runs(phases: &[u32]) -> Vec<PhaseRun> {
    let runs = phases.chunk_by(|one, next| one == next);
    runs.map(|run| PhaseRun { phase: run[0], intervals: run.len() }).collect()
}

/// Characters for phases, in order; later ones are `+`.
const PHASE_CHARACTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Returns the phases of so many parts of the region: of each part the one that most of its intervals are of.
fn phases_of_parts(runs: &[PhaseRun], parts: usize) -> Vec<u32> {
    let all: Vec<u32> =
        runs.iter().flat_map(|run| std::iter::repeat_n(run.phase, run.intervals)).collect();
    let parts = parts.min(all.len());
    let part = |at: usize| &all[at * all.len() / parts..(at + 1) * all.len() / parts];
    (0..parts).map(|at| most_frequent_phase(part(at))).collect()
}

/// Returns the phase that most of some intervals are of, and the first of several.
pub fn most_frequent_phase(intervals: &[u32]) -> u32 {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    intervals.iter().for_each(|phase| *counts.entry(*phase).or_default() += 1);
    let most = counts.into_iter().max_by_key(|(phase, count)| (*count, u32::MAX - phase));
    most.map_or(0, |(phase, _)| phase)
}

/// Returns a character for a phase.
pub fn phase_character(phase: u32) -> char {
    PHASE_CHARACTERS.get(phase as usize).map_or('+', |mark| char::from(*mark))
}

/// Returns the units that have instructions, in order of the region.
fn parts(inputs: &UnitInputs) -> Vec<UnitPart> {
    let columns = inputs.at.iter().zip(&inputs.unit_instructions).zip(&inputs.cycles);
    let units = columns.enumerate().map(|(number, ((at, instructions), cycles))| UnitPart {
        at: *at,
        phase: inputs.phases.get(number).copied().unwrap_or(0),
        weight: inputs.weights.get(number).map_or(1.0, |weight| f64::from(*weight)),
        cycles: *cycles as f64,
        instructions: *instructions as f64,
        variance: 0.0,
    });
    let mut units: Vec<UnitPart> = units.filter(|unit| unit.instructions > 0.0).collect();
    units.sort_by_key(|unit| unit.at);
    let sum = |of: fn(&UnitPart) -> f64| units.iter().map(of).sum::<f64>();
    let cpi = sum(|unit| unit.weight * unit.cycles) / sum(|unit| unit.weight * unit.instructions);
    // Units are compared with those of their own stratum, or with all without strata.
    let mut strata: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    let off = |unit: &UnitPart| unit.cycles - cpi * unit.instructions;
    for unit in &units {
        let (sum, number) = strata.entry(unit.phase).or_default();
        *sum += off(unit);
        *number += 1.0;
    }
    for unit in &mut units {
        let (sum, number) = strata[&unit.phase];
        let mean = if inputs.phases.is_empty() { 0.0 } else { sum / number };
        unit.variance = (unit.weight * (off(unit) - mean)).powi(2);
    }
    units
}

impl UnitSums {
    /// Returns the sums of some units; `whole` is what all units together add to the variance, if that says anything.
    fn of(units: &[UnitPart], whole: Option<f64>) -> Self {
        let sum = |of: fn(&UnitPart) -> f64| units.iter().map(of).sum::<f64>();
        let each = || units.iter().map(|unit| unit.cycles / unit.instructions);
        let cpi =
            sum(|unit| unit.weight * unit.cycles) / sum(|unit| unit.weight * unit.instructions);
        Self {
            units: units.len(),
            cpi: Some(cpi).filter(|cpi| cpi.is_finite()),
            least: each().reduce(f64::min),
            most: each().reduce(f64::max),
            variance: whole.map(|whole| match whole > 0.0 {
                true => sum(|unit| unit.variance) / whole,
                false => 0.0,
            }),
        }
    }
}

impl Section for UnitReport {
    fn write(&self, _: &Common, _: &Options, out: &mut String) -> std::fmt::Result {
        let highest =
            self.stretches.iter().filter_map(|of| of.sums.cpi).fold(f64::MIN_POSITIVE, f64::max);
        let line = |of: &dyn Fn(&UnitSums) -> Option<f64>, highest: f64| -> String {
            let height =
                |stretch: &UnitStretch| of(&stretch.sums).map_or(' ', |it| bar(it / highest));
            self.stretches.iter().map(height).collect()
        };
        writeln!(
            out,
            "\nUnits over the region ({} units; each bar is {:.1} M instructions)",
            count(self.units as f64),
            self.instructions as f64 / self.stretches.len() as f64 / 1e6
        )?;
        writeln!(
            out,
            "  {:<30}{}  ({FULL_BAR} = {highest:.2})",
            "cycles for each instruction",
            line(&|sums| sums.cpi, highest)
        )?;
        let variances = || self.stretches.iter().filter_map(|of| of.sums.variance);
        let most = variances().fold(0.0, f64::max);
        if most > 0.0 {
            writeln!(
                out,
                "  {:<30}{}  ({FULL_BAR} = {:.0} %)",
                "share of the variance",
                line(&|sums| sums.variance, most),
                100.0 * most
            )?;
        }
        if !self.over_region.is_empty() {
            let phases = phases_of_parts(&self.over_region, self.stretches.len());
            let phases: String = phases.into_iter().map(phase_character).collect();
            writeln!(out, "  {:<30}{phases}", "phase")?;
        }
        if let Some(words) = self.weakest_in_words() {
            writeln!(out, "{words}")?;
        }
        if self.phases.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "{:>7}{:>10}{:>8}{:>10}{:>10}{:>10}{:>14}{:>20}",
            "phase",
            "share, %",
            "units",
            "CPI",
            "least",
            "most",
            "variance, %",
            "first at, M instr."
        )?;
        let number =
            |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
        for phase in self.phases.iter().take(LISTED_PHASES) {
            writeln!(
                out,
                "{:>7}{:>10}{:>8}{:>10}{:>10}{:>10}{:>14}{:>20.1}",
                phase.number,
                fixed(phase.share),
                phase.sums.units,
                number(phase.sums.cpi),
                number(phase.sums.least),
                number(phase.sums.most),
                phase.sums.variance.map_or("–".to_owned(), fixed),
                phase.at as f64 / 1e6
            )?;
        }
        match self.phases.len().saturating_sub(LISTED_PHASES) {
            0 => Ok(()),
            more => writeln!(out, "and {more} phases with less of the region"),
        }
    }

    fn page(&self, _: &Common) -> Markup {
        html! {
            section id="units" aria-labelledby="units-title" {
                h2 id="units-title" { "Units over the region" }
                p class="lead" {
                    "Each dot is a unit that was timed: cycles for each of its instructions, over the instructions of the region. "
                    @if !self.phases.is_empty() { "Units of one colour are of one phase, and larger ones stand for more. " }
                    @if let Some(words) = self.weakest_in_words() { (words) }
                }
                (chart::chart(self))
                @if !self.phases.is_empty() {
                    div class="scroll" {
                        table {
                            thead {
                                tr {
                                    th scope="col" { "Phase" }
                                    @for name in ["share, %", "units", "CPI", "least", "most", "variance, %", "first unit at, M instr."] {
                                        th scope="col" class="number" { (name) }
                                    }
                                }
                            }
                            tbody {
                                @for phase in &self.phases { (row(phase)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn row(phase: &UnitPhase) -> Markup {
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
    let cells = [
        fixed(phase.share),
        phase.sums.units.to_string(),
        number(phase.sums.cpi),
        number(phase.sums.least),
        number(phase.sums.most),
        phase.sums.variance.map_or("–".to_owned(), fixed),
        format!("{:.1}", phase.at as f64 / 1e6),
    ];
    html! {
        tr {
            th scope="row" { (phase.number) }
            @for cell in cells { td class="number" { (cell) } }
        }
    }
}
