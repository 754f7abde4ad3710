//! Error against sampling rate, periodic against random; and what splitting samples among instructions
//! that commit together is worth.

mod chart;
pub(crate) mod rules;
mod text;

use maud::{Markup, html};
use profile::{Filter, Level, Profiler, Schedule};
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::{Column, Levels};
use super::model::Common;
use super::options::Options;
use super::section::Section;
use super::tables::ProcessReport;

pub(super) use text::write_split;

/// Least number of periods that make a curve.
const LEAST_PERIODS: usize = 3;

/// The error of one profiler over its periods, in one process.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Curve {
    /// The profiler.
    pub profiler: Profiler,
    /// True if triggers fall on a random cycle of each period.
    pub random: bool,
    /// Points of the curve, ascending by period; at least one.
    pub points: Vec<CurvePoint>,
}

/// A point of a curve: the samplers of one period, which may differ in offset or seed.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct CurvePoint {
    /// Cycles between samples.
    pub period: u64,
    /// Number of samplers.
    pub samplers: usize,
    /// Mean number of samples that fell into the process.
    pub samples: f64,
    /// Mean error, as a fraction.
    pub error: Levels<f64>,
    /// Least error of a sampler.
    pub least: Levels<f64>,
    /// Greatest error of a sampler.
    pub greatest: Levels<f64>,
    /// Mean error that as many independent samples of the truth would have.
    pub sampling: Levels<f64>,
}

/// The curves of one process.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Sensitivity {
    /// Name of the process.
    pub process: String,
    /// The process's curves, in the order of [`Profiler::ALL`], periodic before random.
    pub curves: Vec<Curve>,
}

/// Returns how errors depend on the sampling rate, for the processes of [`Common::focus`] and all together;
/// empty if no profiler sampled at three periods or more. Filtered samplers are left out: their truth
/// is another one.
pub(super) fn sensitivity(common: &Common) -> Vec<Sensitivity> {
    let mut wanted = common.focus();
    wanted.push(0);
    let all = wanted.into_iter().filter_map(|index| {
        let process = common.processes.get(index)?;
        let curves = curves(&common.columns, process);
        let enough = |curve: &Curve| curve.points.len() >= LEAST_PERIODS;
        curves.iter().any(enough).then(|| Sensitivity { process: process.name.clone(), curves })
    });
    all.collect()
}

/// The first process has its tables and charts in text and page; common.json has the others, too.
impl Section for Vec<Sensitivity> {
    fn write(&self, _: &Common, _: &Options, out: &mut String) -> std::fmt::Result {
        self.first().map_or(Ok(()), |first| text::write(out, first))
    }

    fn page(&self, _: &Common) -> Markup {
        html! {
            @if let Some(first) = self.first() {
                (chart::charts(first))
            }
        }
    }
}

fn curves(columns: &[Column], process: &ProcessReport) -> Vec<Curve> {
    let mut curves = Vec::new();
    for profiler in Profiler::ALL {
        for random in [false, true] {
            let of_curve = |column: &Column| {
                let schedule = column.schedule.filter(|s| s.random.is_some() == random);
                schedule
                    .filter(|_| column.profiler == Some(profiler) && column.filter == Filter::NONE)
            };
            let mut found: Vec<(Schedule, usize)> = columns
                .iter()
                .enumerate()
                .filter_map(|(index, column)| Some((of_curve(column)?, index)))
                .collect();
            found.sort_by_key(|(schedule, index)| (schedule.period, *index));
            let same = found.chunk_by(|a, b| a.0.period == b.0.period);
            let points: Vec<_> = same.filter_map(|same| point(same, process)).collect();
            if !points.is_empty() {
                curves.push(Curve { profiler, random, points });
            }
        }
    }
    curves
}

fn point(same: &[(Schedule, usize)], process: &ProcessReport) -> Option<CurvePoint> {
    let columns = same.iter().map(|(_, index)| *index);
    let errors: Vec<_> = columns.clone().filter_map(|index| process.errors[index]).collect();
    let count = errors.len();
    if count == 0 {
        return None;
    }
    let mean = |sum: f64| sum / count as f64;
    let of = |level| errors.iter().map(move |errors| errors.get(level));
    Some(CurvePoint {
        period: same[0].0.period,
        samplers: count,
        samples: columns.map(|index| process.samples[index]).sum::<f64>() / same.len() as f64,
        error: Levels::from_fn(|level| mean(of(level).map(|e| e.error).sum())),
        least: Levels::from_fn(|level| of(level).map(|e| e.error).fold(f64::INFINITY, f64::min)),
        greatest: Levels::from_fn(|level| of(level).map(|e| e.error).fold(0.0, f64::max)),
        sampling: Levels::from_fn(|level| mean(of(level).map(|e| e.sampling).sum())),
    })
}

/// A profiler that names one instruction, and the same that splits its sample among all that commit with it.
const SPLITS: [(Profiler, Profiler); 2] =
    [(Profiler::TipIlp, Profiler::Tip), (Profiler::Nci, Profiler::NciIlp)];

/// What splitting samples changes at one level, in words; nothing if the run does not have both profilers
/// on one schedule.
fn split(common: &Common, process: usize, one: Profiler, all: Profiler) -> Option<String> {
    let level = Level::Instruction;
    let process = &common.processes[process];
    let column = |profiler, like: Option<Schedule>| {
        common.columns.iter().position(|column| {
            column.profiler == Some(profiler)
                && column.filter == Filter::NONE
                && (like.is_none() || column.schedule == like)
        })
    };
    let first = column(one, None)?;
    let second = column(all, common.columns[first].schedule)?;
    let error = |column: usize| Some(process.errors[column]?.get(level).error);
    let (alone, shared) = (error(first)?, error(second)?);
    let noise = process.errors[first]?.get(level).sampling;
    // A difference below a tenth of the sampling error, or below a tenth of a percent, does not count.
    let verdict = match shared - alone {
        change if change.abs() < (noise / 10.0).max(0.001) => "does not matter here",
        change if change < 0.0 => "is worth it here",
        _ => "makes it worse here",
    };
    let published = [one, all].map(|p| p.published(level).map_or("–".into(), |p| p.to_string()));
    Some(format!(
        "{one}: {:.1} %, split among all that commit together ({all}): {:.1} %; it {verdict}. Published: {} and {} %.",
        100.0 * alone,
        100.0 * shared,
        published[0],
        published[1],
    ))
}

#[cfg(test)]
mod tests;
