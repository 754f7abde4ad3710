//! How many times as fast several harts are as one, and what takes the rest.
//!
//! With *T1* cycles of the region on one hart and *T* on each of *N* harts, the speed-up is *T1 / T*. Each component takes its cycles
//! of all harts less those that it has on the one hart, over *T*. All parts together are *N*, as `N T = T1 + (N T - T1)`.

use std::fmt::Write;

use maud::{Markup, html};
use profile::SpeedupComponent;
use serde::Serialize;

use super::run::Run;
use crate::speedup::{SpeedupStack, meaning, title};
use crate::widths::wrap;

/// Least part of a hart that a component has to take, or to give, for the sentence to name it.
const NAMED: f64 = 0.05;

/// A run on one hart, and one of the same program on several.
#[derive(Clone, Debug, Serialize)]
pub struct Speedup {
    /// Number of harts of the second run.
    pub harts: usize,
    /// Cycles of the region on one hart.
    pub before: u64,
    /// Cycles of the region on several harts: the mean over the harts.
    pub after: f64,
    /// How many times as fast the program is on several harts.
    pub speedup: f64,
    /// What the harts do not add to the speed-up, in harts: the number of harts less the speed-up. The components add up to it.
    pub lost: f64,
    /// What takes it, in one order for all runs.
    pub components: Vec<LostSpeedup>,
    /// Mean cycles that a line which a load reads from memory waits there, on one hart and on several, if that was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_wait: Option<[f64; 2]>,
    /// All of it in words.
    pub verdict: String,
}

/// A component's part of what is lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LostSpeedup {
    /// What the cycles are spent on.
    pub component: SpeedupComponent,
    /// Cycles on one hart.
    pub before: u64,
    /// Cycles on several harts, added up.
    pub after: u64,
    /// What the component takes of the speed-up, in harts; negative if there is less of it than on one hart.
    pub lost: f64,
}

/// Returns the speed-up of a run on one hart to one on several; `None` if they are not that.
pub(super) fn speedup(before: &Run, after: &Run) -> Option<Speedup> {
    match (&before.speedup, &after.speedup) {
        (Some(one), Some(several)) => Speedup::new(one, several),
        _ => None,
    }
}

impl Speedup {
    /// Returns the speed-up from one stack to another; `None` if the first is not of one hart, the second not of several, or one is
    /// empty.
    fn new(one: &SpeedupStack, several: &SpeedupStack) -> Option<Self> {
        if one.harts != 1 || several.harts < 2 || one.cycles == 0 || several.cycles == 0 {
            return None;
        }
        if !one.is_sound() || !several.is_sound() {
            return None;
        }
        let harts = several.harts as f64;
        let elapsed = several.cycles as f64 / harts;
        let components = SpeedupComponent::ALL.map(|component| {
            let (before, after) = (one.cycles_of(component), several.cycles_of(component));
            let excess = i128::from(after) - i128::from(before);
            LostSpeedup { component, before, after, lost: excess as f64 / elapsed }
        });
        let mut found = Self {
            harts: several.harts,
            before: one.cycles,
            after: elapsed,
            speedup: one.cycles as f64 / elapsed,
            lost: (several.cycles as f64 - one.cycles as f64) / elapsed,
            components: components.into(),
            memory_wait: one
                .memory
                .zip(several.memory)
                .map(|(one, several)| [one.mean_wait(), several.mean_wait()]),
            verdict: String::new(),
        };
        found.verdict = found.in_words();
        Some(found)
    }

    /// Returns a sentence: how fast, and what takes the rest, the largest part first.
    fn in_words(&self) -> String {
        let mut parts: Vec<&LostSpeedup> = self.components.iter().collect();
        parts.sort_by(|a, b| b.lost.abs().total_cmp(&a.lost.abs()));
        let list = |sign: f64, verb: &str, preposition: &str| {
            let named = parts.iter().filter(|part| sign * part.lost >= NAMED);
            let named = named.enumerate().map(|(at, part)| {
                let verb = if at == 0 { verb } else { "" };
                let name = in_sentence(part.component);
                let of = if at == 0 { format!(" of the {}", self.harts) } else { String::new() };
                format!("{:.2}{of}{verb} {preposition} {name}", part.lost.abs())
            });
            listed(&named.collect::<Vec<_>>())
        };
        let mut words =
            format!("{} harts are {:.2} times as fast as one", self.harts, self.speedup);
        let lists = [list(1.0, " is lost", "to"), list(-1.0, " is gained", "in")];
        let named: Vec<String> = lists.into_iter().filter(|list| !list.is_empty()).collect();
        if !named.is_empty() {
            words += &format!(": {}", named.join("; "));
        }
        words + "."
    }

    /// Writes the sentence and a table.
    pub(super) fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out)?;
        for line in wrap(&self.verdict, 116) {
            writeln!(out, "{line}")?;
        }
        writeln!(
            out,
            "\n{:<26}{:>12}{:>12}{:>12}{:>9}",
            "Speed-up", "M one hart", "M all harts", "M more", "harts"
        )?;
        for row in self.shown() {
            writeln!(
                out,
                "{:<26}{:>12.3}{:>12.3}{:>+12.3}{:>+9.3}",
                title(row.component),
                row.before as f64 / 1e6,
                row.after as f64 / 1e6,
                row.more() / 1e6,
                row.lost,
            )?;
        }
        let all = self.after * self.harts as f64;
        writeln!(
            out,
            "{:<26}{:>12.3}{:>12.3}{:>+12.3}{:>+9.3}  lost",
            "all",
            self.before as f64 / 1e6,
            all / 1e6,
            (all - self.before as f64) / 1e6,
            self.lost
        )?;
        writeln!(
            out,
            "{:<62}{:>9.3}  speed-up: with what is lost, {} harts",
            "", self.speedup, self.harts
        )?;
        match self.memory_in_words() {
            Some(words) => writeln!(out, "{words}"),
            None => Ok(()),
        }
    }

    /// Returns what loads wait in memory's queues, in words.
    fn memory_in_words(&self) -> Option<String> {
        let [one, several] = self.memory_wait?;
        Some(format!(
            "memory: a line that a load reads waits {one:.1} cycles in its queues on one hart, {several:.1} on {} harts",
            self.harts
        ))
    }

    /// Returns the section of the page.
    pub(crate) fn page(&self) -> Markup {
        let millions = |cycles: f64| format!("{:.3}", cycles / 1e6);
        let all = self.after * self.harts as f64;
        html! {
            section id="speedup" aria-labelledby="speedup-title" {
                h2 id="speedup-title" { "Speed-up" }
                p { (self.verdict) }
                p class="muted" {
                    "In millions of cycles, and in harts: the speed-up and what each component takes of it add up to "
                    (self.harts) "."
                }
                div class="scroll" {
                    table {
                        thead {
                            tr {
                                th { "component" }
                                @for title in ["one hart", "all harts", "more", "harts lost"] {
                                    th class="number" { (title) }
                                }
                                th { "what it is" }
                            }
                        }
                        tbody {
                            @for row in self.shown() {
                                tr {
                                    td { (title(row.component)) }
                                    td class="number" { (millions(row.before as f64)) }
                                    td class="number" { (millions(row.after as f64)) }
                                    td class="number" { (format_args!("{:+.3}", row.more() / 1e6)) }
                                    td class="number" { (format_args!("{:+.3}", row.lost)) }
                                    td { (meaning(row.component)) }
                                }
                            }
                            tr {
                                td { "all" }
                                td class="number" { (millions(self.before as f64)) }
                                td class="number" { (millions(all)) }
                                td class="number" {
                                    (format_args!("{:+.3}", (all - self.before as f64) / 1e6))
                                }
                                td class="number" { (format_args!("{:+.3}", self.lost)) }
                                td { "with the speed-up of " (format_args!("{:.3}", self.speedup)) ", " (self.harts) " harts" }
                            }
                        }
                    }
                }
                @if let Some(words) = self.memory_in_words() {
                    p class="muted" { (words) }
                }
            }
        }
    }

    /// Returns the components that either run has.
    fn shown(&self) -> impl Iterator<Item = &LostSpeedup> {
        self.components.iter().filter(|row| row.before > 0 || row.after > 0)
    }
}

impl LostSpeedup {
    /// Returns the cycles of all harts less those of the one.
    fn more(&self) -> f64 {
        self.after as f64 - self.before as f64
    }
}

/// Returns what a component is called in a sentence.
fn in_sentence(component: SpeedupComponent) -> &'static str {
    match component {
        SpeedupComponent::Base => "user-mode work",
        SpeedupComponent::SharedCache => "loads from the shared cache",
        SpeedupComponent::Memory => "loads from memory",
        SpeedupComponent::Stores => "the full store queue",
        SpeedupComponent::Kernel => "the kernel",
        SpeedupComponent::Ready => "threads that are ready but not run",
        SpeedupComponent::OtherWaits => "waiting for anything but locks",
        SpeedupComponent::Serial => "serial parts",
        SpeedupComponent::NoThread => "harts without a thread",
        SpeedupComponent::Idle => "idle harts",
        named => title(named),
    }
}

/// Returns parts of a sentence as a list.
fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests;
