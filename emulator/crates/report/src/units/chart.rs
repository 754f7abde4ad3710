//! Units as an SVG image: cycles for each instruction over the instructions of the region.

use std::borrow::Cow;

use maud::{Markup, html};

use super::{UnitDot, UnitReport, phases_of_parts, runs};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 240.0;
/// The strip of phases, above the plot, and what makes room for it.
const PHASES_HEIGHT: f64 = 14.0;
const PHASES_ROOM: f64 = 20.0;
/// Edges of the plot in the image, in SVG units.
const LEFT: f64 = 44.0;
const RIGHT: f64 = WIDTH - 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 58.0;
/// The strip of shares of the variance, below the axis.
const STRIP_TOP: f64 = BOTTOM + 26.0;
const STRIP_HEIGHT: f64 = 22.0;
/// Dots that a page has at most.
const MOST_DOTS: usize = 2000;
/// Runs of intervals of one phase that the strip shows as they are; of more it shows parts of the region.
const MAX_PHASE_RUNS: usize = 5000;
/// Parts of the region that the strip shows instead of very many runs.
const STRIP_PARTS: usize = 1000;
/// Colours of the page that phases have in turn.
const COLORS: usize = 7;

/// Returns the chart of all units.
pub(super) fn chart(report: &UnitReport) -> Markup {
    let highest = report.dots.iter().map(|mark| mark.cpi).fold(0.0, f64::max);
    let step = step(highest);
    let top = (highest / step).ceil().max(1.0) * step;
    let x = |at: u64| LEFT + (RIGHT - LEFT) * at as f64 / report.instructions as f64;
    let y = |cpi: f64| BOTTOM - (BOTTOM - TOP) * cpi / top;
    let has_phases = !report.phases.is_empty();
    let color = |mark: &UnitDot| if has_phases { mark.phase as usize % COLORS } else { 4 };
    let room = if report.over_region.is_empty() { 0.0 } else { PHASES_ROOM };
    let radius = |mark: &UnitDot| (2.0 * mark.weight.sqrt()).clamp(1.5, 9.0);
    let every = report.dots.len().div_ceil(MOST_DOTS).max(1);
    let lines = (0..=(top / step).round() as usize).map(|number| number as f64 * step);
    let edges = [(0, "start"), (1, "middle"), (2, "middle"), (3, "middle"), (4, "end")];
    let edges = edges.map(|(quarter, anchor)| (report.instructions / 4 * quarter, anchor));
    let most = report.stretches.iter().filter_map(|of| of.sums.variance).fold(0.0, f64::max);
    html! {
        div class="chart" {
            svg viewBox={ "0 " (-room) " " (WIDTH) " " (HEIGHT + room) } role="img" aria-label="Cycles for each instruction of each unit, over the region" {
                (phases(report))
                @for cpi in lines {
                    line class="grid" x1=(LEFT) x2=(RIGHT) y1=(short(y(cpi))) y2=(short(y(cpi))) {}
                    text class="axis" x=(LEFT - 6.0) y=(short(y(cpi) + 4.0)) text-anchor="end" { (short(cpi)) }
                }
                @for (at, anchor) in edges {
                    text class="axis" x=(short(x(at))) y=(BOTTOM + 16.0) text-anchor=(anchor) { (format!("{:.0} M", at as f64 / 1e6)) }
                }
                @for mark in report.dots.iter().step_by(every) {
                    circle cx=(short(x(mark.at))) cy=(short(y(mark.cpi))) r=(short(radius(mark))) style={ "fill:var(--c" (color(mark)) ");fill-opacity:.65" } {
                        title { (title(mark, has_phases)) }
                    }
                }
                @if most > 0.0 {
                    @for stretch in &report.stretches {
                        @let variance = stretch.sums.variance.unwrap_or(0.0);
                        rect x=(short(x(stretch.at))) y=(STRIP_TOP) height=(STRIP_HEIGHT)
                            width=(short(x(stretch.at + stretch.instructions) - x(stretch.at)))
                            style={ "fill:var(--over);fill-opacity:" (short(variance / most)) } {
                            title { (format!("{:.1} % of the variance by {} units", 100.0 * variance, stretch.sums.units)) }
                        }
                    }
                    text class="axis" x=(LEFT) y=(HEIGHT - 1.0) { "share of the estimate's variance: the darker, the less certain" }
                }
            }
            @if every > 1 { p class="muted" { "One unit in " (every) " has a dot." } }
        }
    }
}

/// Returns the strip of phases over the region.
fn phases(report: &UnitReport) -> Markup {
    let shown = match report.over_region.len() {
        0..=MAX_PHASE_RUNS => Cow::Borrowed(&report.over_region[..]),
        _ => Cow::Owned(runs(&phases_of_parts(&report.over_region, STRIP_PARTS))),
    };
    let all: usize = shown.iter().map(|run| run.intervals).sum();
    let x = |interval: usize| LEFT + (RIGHT - LEFT) * interval as f64 / all.max(1) as f64;
    let mut begins = 0;
    let places = shown.iter().map(|run| {
        let from = begins;
        begins += run.intervals;
        (run, from, begins)
    });
    html! {
        @for (run, from, to) in places {
            rect x=(short(x(from))) y=(-PHASES_ROOM + 2.0) height=(PHASES_HEIGHT) width=(short(x(to) - x(from))) style={ "fill:var(--c" (run.phase as usize % COLORS) ")" } {
                title { "phase " (run.phase) }
            }
        }
    }
}

fn title(mark: &UnitDot, has_phases: bool) -> String {
    let phase = if has_phases { format!(", phase {}", mark.phase) } else { String::new() };
    format!("{:.3} cycles for each instruction, at {:.1} M{phase}", mark.cpi, mark.at as f64 / 1e6)
}

/// Returns the distance of lines for values up to `highest`: 1, 2 or 5 of a power of ten, for two to five lines.
fn step(highest: f64) -> f64 {
    let highest = if highest > 0.0 && highest.is_finite() { highest } else { 1.0 };
    let power = 10f64.powf((highest / 2.0).log10().floor());
    let wanted = highest / power / 4.0;
    power * [0.5, 1.0, 2.0, 5.0].into_iter().find(|step| *step >= wanted).unwrap_or(10.0)
}

/// Returns a number with two decimals, without trailing zeros.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
