//! Curves as an SVG image per level: error over cycles between samples, which are on a logarithmic scale.

use maud::{Markup, html};
use profile::Level;

use super::{Curve, Profiler, Sensitivity};

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 290.0;
/// Edges of the plot in the image, in SVG units.
const LEFT: f64 = 44.0;
const RIGHT: f64 = WIDTH - 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 40.0;

/// Returns the charts of a process as a section of the page.
pub(super) fn charts(sensitivity: &Sensitivity) -> Markup {
    let known = |profiler: Profiler| sensitivity.curves.iter().any(|c| c.profiler == profiler);
    let drawn = Profiler::ALL.into_iter().enumerate().filter(|(_, profiler)| known(*profiler));
    html! {
        section id="sensitivity" aria-labelledby="sensitivity-title" {
            h2 id="sensitivity-title" { "Error against sampling rate" }
            p class="lead" {
                "Profile error of " (sensitivity.process) " over the cycles between two samples; solid: periodic, dashed: random, \
                 dots: what independent samples of the truth would leave. Where a curve leaves the dots, it is the profiler that is \
                 wrong, and more samples do not help."
            }
            div class="legend" {
                @for (number, profiler) in drawn {
                    span {
                        svg class="curves" viewBox="0 0 18 12" aria-hidden="true" { path class={ "p" (number) } d="M0 6H18" {} }
                        (profiler.name())
                    }
                }
            }
            div class="curve-charts" {
                @for level in Level::ALL {
                    div class="chart" {
                        h3 { "By " (level.name()) }
                        (chart(&sensitivity.curves, level))
                    }
                }
            }
        }
    }
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

fn chart(curves: &[Curve], level: Level) -> Markup {
    let scale = Scale::new(curves, level);
    let of_sampling = curves.first().map(|curve| {
        let points = curve.points.iter().map(|p| (p.period, *p.sampling.get(level)));
        line(&scale, "sampled", points)
    });
    html! {
        svg class="curves" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img"
            aria-label={ "Error by " (level.name()) " against cycles between samples" } {
            @for step in 0..=4 {
                (error_grid(&scale, scale.top * f64::from(step) / 4.0))
            }
            @for power in 0..=19u32 {
                @if (scale.least..=scale.greatest).contains(&f64::from(power)) {
                    (period_grid(&scale, power))
                }
            }
            (axis_label((LEFT + RIGHT) / 2.0, BOTTOM + 33.0, "middle", "cycles between samples"))
            @if let Some(line) = of_sampling {
                (line)
            }
            @for curve in curves {
                (curve.draw(&scale, level))
            }
        }
    }
}

/// Returns a horizontal line at an error, with its label.
fn error_grid(scale: &Scale, error: f64) -> Markup {
    let y = scale.y(error);
    let digits = usize::from(scale.top < 0.2);
    html! {
        path class="grid" d=(format_args!("M{LEFT} {y:.1}H{RIGHT}")) {}
        (axis_label(LEFT - 5.0, y + 4.0, "end", &format!("{:.digits$} %", 100.0 * error)))
    }
}

/// Returns a vertical line at a power of ten, with its label.
fn period_grid(scale: &Scale, power: u32) -> Markup {
    let period = 10u64.pow(power);
    let x = scale.x(period);
    let label = match power {
        0..=2 => period.to_string(),
        3..=5 => format!("{}k", period / 1000),
        _ => format!("{}M", period / 1_000_000),
    };
    html! {
        path class="grid" d=(format_args!("M{x:.1} {TOP}V{BOTTOM}")) {}
        (axis_label(x, BOTTOM + 16.0, "middle", &label))
    }
}

fn axis_label(x: f64, y: f64, anchor: &str, label: &str) -> Markup {
    html! {
        text class="axis" x=(format_args!("{x:.1}")) y=(format_args!("{y:.1}")) text-anchor=(anchor) { (label) }
    }
}

impl Curve {
    /// Returns the curve, and each point with the range of its samplers.
    fn draw(&self, scale: &Scale, level: Level) -> Markup {
        let class = format!("p{}", self.profiler as usize);
        let random = if self.random { " random" } else { "" };
        let errors = self.points.iter().map(|p| (p.period, *p.error.get(level)));
        html! {
            (line(scale, &format!("{class}{random}"), errors))
            @for point in &self.points {
                @let (x, error) = (scale.x(point.period), *point.error.get(level));
                @if point.samplers > 1 {
                    @let (least, greatest) = (scale.y(*point.least.get(level)), scale.y(*point.greatest.get(level)));
                    path class=(class) d=(format_args!("M{x:.1} {least:.1}V{greatest:.1}")) {}
                }
                circle class=(class) cx=(format_args!("{x:.1}")) cy=(format_args!("{:.1}", scale.y(error))) r="2.5" {
                    title {
                        (self.profiler.name()) (random) ", every " (point.period) " cycles, "
                        (format_args!("{:.0} samples: {:.2} %", point.samples, 100.0 * error))
                    }
                }
            }
        }
    }
}

fn line(scale: &Scale, class: &str, points: impl Iterator<Item = (u64, f64)>) -> Markup {
    let mut path = String::new();
    for (period, error) in points {
        let command = if path.is_empty() { 'M' } else { 'L' };
        path += &format!("{command}{:.1} {:.1}", scale.x(period), scale.y(error));
    }
    html! { path class=(class) d=(path) {} }
}
