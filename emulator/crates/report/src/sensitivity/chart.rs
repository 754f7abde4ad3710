//! Curves as an SVG image per level: error over cycles between samples, which are on a logarithmic scale.

use std::fmt::Write;

use profile::Level;

use super::{Curve, Profiler, Sensitivity};
use crate::markup::escape;

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 290.0;
/// Edges of the plot in the image, in SVG units.
const LEFT: f64 = 44.0;
const RIGHT: f64 = WIDTH - 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 40.0;

/// Returns the charts of a process as a section of the page.
pub(super) fn charts(of_process: &Sensitivity) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = section(&mut out, of_process);
    out
}

fn section(out: &mut String, sensitivity: &Sensitivity) -> std::fmt::Result {
    writeln!(
        out,
        "<section id=\"sensitivity\" aria-labelledby=\"sensitivity-title\">\n\
         <h2 id=\"sensitivity-title\">Error against sampling rate</h2>\n\
         <p class=\"lead\">Profile error of {} over the cycles between two samples; solid: periodic, dashed: random, \
         dots: what independent samples of the truth would leave. Where a curve leaves the dots, it is the profiler \
         that is wrong, and more samples do not help.</p>",
        escape(&sensitivity.process)
    )?;
    writeln!(out, "<div class=\"legend\">")?;
    for (number, profiler) in (0..).zip(Profiler::ALL) {
        if sensitivity.curves.iter().any(|c| c.profiler == profiler) {
            writeln!(
                out,
                "<span><svg class=\"curves\" viewBox=\"0 0 18 12\" aria-hidden=\"true\"><path class=\"p{number}\" \
                 d=\"M0 6H18\"></path></svg>{profiler}</span>"
            )?;
        }
    }
    writeln!(out, "</div>\n<div class=\"curve-charts\">")?;
    for level in Level::ALL {
        writeln!(out, "<div class=\"chart\"><h3>By {}</h3>", level.name())?;
        chart(out, &sensitivity.curves, level)?;
        writeln!(out, "</div>")?;
    }
    writeln!(out, "</div>\n</section>")
}

/// Places of values in the plot.
struct Scale {
    least: f64,
    greatest: f64,
    /// Error at the top.
    top: f64,
}

impl Scale {
    fn new(curves: &[Curve], level: Level) -> Self {
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let periods = points().map(|point| (point.period as f64).log10());
        let highest =
            points().map(|p| p.greatest.get(level).max(*p.sampling.get(level))).fold(0.0, f64::max);
        Self {
            least: periods.clone().fold(f64::INFINITY, f64::min),
            greatest: periods.fold(0.0, f64::max),
            // The next tenth, or the next hundredth of small ones.
            top: if highest > 0.1 {
                (highest * 10.0).ceil() / 10.0
            } else {
                ((highest * 100.0).ceil() / 100.0).max(0.01)
            },
        }
    }

    fn x(&self, period: u64) -> f64 {
        let range = (self.greatest - self.least).max(f64::MIN_POSITIVE);
        LEFT + (RIGHT - LEFT) * ((period as f64).log10() - self.least) / range
    }

    fn y(&self, error: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * error / self.top
    }
}

fn chart(out: &mut String, curves: &[Curve], level: Level) -> std::fmt::Result {
    let scale = Scale::new(curves, level);
    writeln!(
        out,
        "<svg class=\"curves\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Error by {} against \
         cycles between samples\">",
        level.name()
    )?;
    for step in 0..=4 {
        let error = scale.top * f64::from(step) / 4.0;
        let y = scale.y(error);
        let percent = 100.0 * error;
        let digits = usize::from(scale.top < 0.2);
        writeln!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"></path>\
             <text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{percent:.digits$} %</text>",
            LEFT - 5.0,
            y + 4.0
        )?;
    }
    for power in 0..=19u32 {
        let period = 10u64.pow(power);
        let place = f64::from(power);
        if place < scale.least || place > scale.greatest {
            continue;
        }
        let x = scale.x(period);
        let label = match power {
            0..=2 => period.to_string(),
            3..=5 => format!("{}k", period / 1000),
            _ => format!("{}M", period / 1_000_000),
        };
        writeln!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {TOP}V{BOTTOM}\"></path>\
             <text class=\"axis\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            BOTTOM + 16.0
        )?;
    }
    writeln!(
        out,
        "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">cycles between samples</text>",
        (LEFT + RIGHT) / 2.0,
        BOTTOM + 33.0
    )?;
    if let Some(curve) = curves.first() {
        let sampling = curve.points.iter().map(|p| (p.period, *p.sampling.get(level)));
        line(out, &scale, "sampled", sampling)?;
    }
    for curve in curves {
        let number = curve.profiler as usize;
        let random = if curve.random { " random" } else { "" };
        let errors = curve.points.iter().map(|p| (p.period, *p.error.get(level)));
        line(out, &scale, &format!("p{number}{random}"), errors)?;
        for point in &curve.points {
            let (x, error) = (scale.x(point.period), *point.error.get(level));
            let (least, greatest) = (*point.least.get(level), *point.greatest.get(level));
            if point.samplers > 1 {
                writeln!(
                    out,
                    "<path class=\"p{number}\" d=\"M{x:.1} {:.1}V{:.1}\"></path>",
                    scale.y(least),
                    scale.y(greatest)
                )?;
            }
            writeln!(
                out,
                "<circle class=\"p{number}\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"2.5\"><title>{}{random}, every {} cycles, \
                 {:.0} samples: {:.2} %</title></circle>",
                scale.y(error),
                curve.profiler,
                point.period,
                point.samples,
                100.0 * error
            )?;
        }
    }
    writeln!(out, "</svg>")
}

fn line(
    out: &mut String,
    scale: &Scale,
    class: &str,
    points: impl Iterator<Item = (u64, f64)>,
) -> std::fmt::Result {
    let mut path = String::new();
    for (period, error) in points {
        let command = if path.is_empty() { 'M' } else { 'L' };
        write!(path, "{command}{:.1} {:.1}", scale.x(period), scale.y(error))?;
    }
    writeln!(out, "<path class=\"{class}\" d=\"{path}\"></path>")
}
