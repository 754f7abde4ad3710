//! Curves as tables.

use std::collections::BTreeMap;
use std::fmt::Write;

use profile::Level;

use super::{Curve, Profiler, SPLITS, Sensitivity, split};
use crate::model::Common;
use crate::widths::{count, fit, fixed};

/// Writes a process's tables, by instruction and by function; report.json has those by block, too.
pub(super) fn write(out: &mut String, sensitivity: &Sensitivity) -> std::fmt::Result {
    [Level::Instruction, Level::Function]
        .into_iter()
        .try_for_each(|level| table(out, sensitivity, level))
}

fn table(out: &mut String, sensitivity: &Sensitivity, level: Level) -> std::fmt::Result {
    let profilers: Vec<Profiler> = Profiler::ALL
        .into_iter()
        .filter(|p| sensitivity.curves.iter().any(|c| c.profiler == *p))
        .collect();
    writeln!(
        out,
        "\nError against sampling rate, {}, by {}, %: periodic / random",
        fit(&sensitivity.process, 50),
        level.name()
    )?;
    write!(out, "{:>10}{:>11}{:>9}", "every", "samples", "sampling")?;
    for profiler in &profilers {
        write!(out, "{:>11}", profiler.name().replace("dispatch-", "disp.-"))?;
    }
    writeln!(out)?;
    let mut rows = BTreeMap::<u64, Vec<(&Curve, usize)>>::new();
    for curve in &sensitivity.curves {
        for (at, point) in curve.points.iter().enumerate() {
            rows.entry(point.period).or_default().push((curve, at));
        }
    }
    for (period, points) in rows {
        // The first profiler's samples stand for all: others drop a few.
        let first = points.first().map(|(curve, at)| &curve.points[*at]);
        let (samples, sampling) = first.map_or((0.0, 0.0), |p| (p.samples, *p.sampling.get(level)));
        write!(out, "{:>10}{:>11}{:>9}", count(period as f64), count(samples), fixed(sampling))?;
        for profiler in &profilers {
            let of = |random: bool| {
                let found =
                    points.iter().find(|(c, _)| c.profiler == *profiler && c.random == random);
                found.map_or("–".to_owned(), |(curve, at)| {
                    fixed(*curve.points[*at].error.get(level))
                })
            };
            let cell = match (of(false), of(true)) {
                (periodic, random) if random == "–" => periodic,
                (periodic, random) => format!("{periodic}/{random}"),
            };
            write!(out, "{cell:>11}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes what splitting samples is worth in a process: NCI against NCI+ILP, TIP-ILP against TIP.
pub(crate) fn write_split(out: &mut String, common: &Common, process: usize) -> std::fmt::Result {
    for (one, all) in SPLITS {
        if let Some(words) = split(common, process, one, all) {
            writeln!(out, "{words}")?;
        }
    }
    Ok(())
}
