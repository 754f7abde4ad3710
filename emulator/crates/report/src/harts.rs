//! Several harts: what each did, and which process ran on it over time.

pub(crate) mod rules;

use std::fmt::Write;

use maud::{Markup, html};
use profile::{CATEGORIES, Evaluation, MergedNumbers};
use schemars::JsonSchema;
use serde::Serialize;

use super::model::Common;
use super::options::Options;
use super::section::Section;
use super::widths::{count, fit, percent};

/// A row of the section: what a hart executed.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct HartRow {
    /// The hart's number.
    pub hart: usize,
    /// Cycles in the region of interest, idle ones included.
    pub cycles: u64,
    /// Cycles in which the hart slept.
    pub idle: u64,
    /// Instructions that committed.
    pub instructions: u64,
    /// Shares of the hart's busy cycles by published category, in the order of [`CATEGORIES`].
    pub stack: [f64; 7],
    /// The processes that the hart executed over time, if that was counted.
    pub windows: Vec<HartWindow>,
}

/// A stretch of time.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct HartWindow {
    /// The first cycle of the stretch.
    pub start: u64,
    /// The first cycle after the stretch.
    pub end: u64,
    /// Indices into [`processes`](Common::processes), with the cycles in which the hart executed them.
    pub processes: Vec<(usize, u64)>,
}

/// Colours of the timeline, one for each of the most expensive processes.
const COLOURS: [&str; 8] =
    ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#44bb99"];
/// The timeline's colour of all other processes.
const OTHER: &str = "#999999";
/// Size of the timeline, and of a hart's row in it, in its own units.
const WIDTH: f64 = 1000.0;
const ROW: f64 = 28.0;

/// Returns a row for each hart if the run has several; the rest of the report is the sum over all harts.
pub(super) fn harts(common: &Common, harts: &[Evaluation]) -> Vec<HartRow> {
    if harts.len() < 2 {
        return Vec::new();
    }
    let numbers = Evaluation::merged_numbers(harts);
    let all = harts.iter().zip(&numbers).enumerate();
    all.map(|(hart, (evaluation, numbers))| HartRow::new(common, hart, evaluation, numbers))
        .collect()
}

impl HartRow {
    fn new(common: &Common, hart: usize, evaluation: &Evaluation, numbers: &MergedNumbers) -> Self {
        let mut stack = [0.0; 7];
        for (_, inst, units) in evaluation.stacks.iter() {
            let class = evaluation.static_info[inst.0 as usize].class;
            for (sum, units) in stack.iter_mut().zip(units.categories(class)) {
                *sum += units as f64;
            }
        }
        let total = stack.iter().sum::<f64>().max(1.0);
        let windows = evaluation.top_down.iter().flat_map(|top_down| &top_down.windows);
        let windows = windows.map(|window| HartWindow {
            start: window.start,
            end: window.end,
            processes: window
                .processes
                .iter()
                .filter_map(|(process, spent)| {
                    let row = common.row_of(numbers.process(*process))?;
                    Some((row, spent.cycles.iter().sum()))
                })
                .collect(),
        });
        Self {
            hart,
            cycles: evaluation.cycles,
            idle: evaluation.idle,
            instructions: evaluation.instructions,
            stack: stack.map(|units| units / total),
            windows: windows.collect(),
        }
    }
}

impl Section for Vec<HartRow> {
    fn write(&self, common: &Common, _: &Options, out: &mut String) -> std::fmt::Result {
        if self.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n{:<6}{:>14}{:>8}{:>15}{:>7}   cycle stack, % as above; most of its time",
            "hart", "cycles", "busy %", "instructions", "IPC"
        )?;
        for row in self {
            let stack: Vec<String> =
                row.stack.iter().map(|share| format!("{:>6}", percent(*share))).collect();
            writeln!(
                out,
                "{:<6}{:>14}{:>8}{:>15}{:>7.2}  {}  {}",
                row.hart,
                count(row.cycles as f64),
                percent(row.busy() / row.cycles.max(1) as f64),
                count(row.instructions as f64),
                row.ipc(),
                stack.concat(),
                fit(&row.mostly(common), 24),
            )?;
        }
        Ok(())
    }

    /// Returns a table, and who ran where over time.
    fn page(&self, common: &Common) -> Markup {
        if self.is_empty() {
            return html! {};
        }
        html! {
            section id="harts" aria-labelledby="harts-title" {
                h2 id="harts-title" { "Harts" }
                div class="scroll" {
                    table {
                        thead {
                            tr {
                                th { "hart" }
                                @for title in ["cycles", "busy %", "instructions", "IPC"] {
                                    th class="number" { (title) }
                                }
                                @for category in CATEGORIES {
                                    th class="number" { (category) " %" }
                                }
                                th { "most of its time" }
                            }
                        }
                        tbody {
                            @for row in self {
                                tr {
                                    td { (row.hart) }
                                    td class="number" { (count(row.cycles as f64)) }
                                    td class="number" { (percent(row.busy() / row.cycles.max(1) as f64)) }
                                    td class="number" { (count(row.instructions as f64)) }
                                    td class="number" { (format_args!("{:.2}", row.ipc())) }
                                    @for share in row.stack {
                                        td class="number" { (percent(share)) }
                                    }
                                    td { (row.mostly(common)) }
                                }
                            }
                        }
                    }
                }
                (timeline(self, common))
            }
        }
    }
}

/// Returns a row for each hart, in which the processes of each stretch of time have their share of its height; what is empty is idle.
fn timeline(harts: &[HartRow], common: &Common) -> Markup {
    let windows = || harts.iter().flat_map(|row| &row.windows);
    let Some(start) = windows().map(|window| window.start).min() else {
        return html! {};
    };
    let end = windows().map(|window| window.end).max().unwrap_or(start);
    let mut sums = vec![0; common.processes.len()];
    for row in harts {
        let by_process = row.by_process(sums.len());
        sums.iter_mut().zip(by_process).for_each(|(sum, own)| *sum += own);
    }
    let mut order: Vec<usize> = (0..sums.len()).filter(|&process| sums[process] > 0).collect();
    order.sort_by_key(|&process| std::cmp::Reverse(sums[process]));
    let colour = |process: usize| {
        let rank = order.iter().position(|&other| other == process);
        rank.and_then(|rank| COLOURS.get(rank)).unwrap_or(&OTHER)
    };
    let scale = WIDTH / end.saturating_sub(start).max(1) as f64;
    let shown = order.iter().take(COLOURS.len());
    html! {
        p { "Who ran where, from cycle " (count(start as f64)) " to " (count(end as f64)) ": " }
        svg class="harts" viewBox={ "-60 0 " (WIDTH + 60.0) " " (ROW * harts.len() as f64) } role="img"
            aria-label="processes by hart over time" {
            @for row in harts {
                @let top = ROW * row.hart as f64;
                text x="-6" y=(format_args!("{:.1}", top + 0.65 * ROW)) text-anchor="end" font-size="12"
                    fill="currentColor" {
                    "hart " (row.hart)
                }
                @for window in &row.windows {
                    @let length = window.end.saturating_sub(window.start);
                    @let x = (window.start - start) as f64 * scale;
                    @for (process, cycles, above, height) in window.stacked() {
                        rect x=(format_args!("{x:.1}")) y=(format_args!("{:.1}", top + ROW - 2.0 - above))
                            width=(format_args!("{:.1}", (length as f64 * scale).max(0.5)))
                            height=(format_args!("{height:.1}")) fill=(colour(process)) {
                            title {
                                (common.processes[process].name) ": " (count(cycles as f64)) " of "
                                (count(length as f64)) " cycles"
                            }
                        }
                    }
                }
            }
        }
        p {
            @for &process in shown {
                span style={ "color:" (colour(process)) } { "■" } " " (common.processes[process].name) " \u{2002}"
            }
        }
    }
}

impl HartWindow {
    /// Returns each process with its cycles in the window, the upper edge of its bar above the row's lower edge, and the bar's height.
    fn stacked(&self) -> impl Iterator<Item = (usize, u64, f64, f64)> {
        let length = self.end.saturating_sub(self.start).max(1) as f64;
        self.processes.iter().scan(0.0, move |above, &(process, cycles)| {
            let height = (ROW - 4.0) * cycles as f64 / length;
            *above += height;
            Some((process, cycles, *above, height))
        })
    }
}

impl HartRow {
    /// Returns the name of the process that the hart executed most.
    fn mostly(&self, common: &Common) -> String {
        let cycles = self.by_process(common.processes.len());
        let most = (0..cycles.len()).max_by_key(|&process| cycles[process]);
        most.filter(|&process| cycles[process] > 0)
            .map_or_else(String::new, |process| common.processes[process].name.clone())
    }

    fn busy(&self) -> f64 {
        self.cycles.saturating_sub(self.idle) as f64
    }

    fn ipc(&self) -> f64 {
        self.instructions as f64 / self.busy().max(1.0)
    }

    /// Cycles of each of so many processes.
    fn by_process(&self, processes: usize) -> Vec<u64> {
        let mut sums = vec![0; processes];
        for &(process, cycles) in self.windows.iter().flat_map(|window| &window.processes) {
            sums[process] += cycles;
        }
        sums
    }
}
