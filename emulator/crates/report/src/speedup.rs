//! The speed-up stack: what the time of all harts is spent on, each cycle of each hart in one component.

pub(crate) mod rules;

use std::fmt::Write;

use maud::{Markup, html};
use profile::{Evaluation, HartCycles, SpeedupComponent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::Common;
use super::options::Options;
use super::section::Section;
use super::widths::{count, percent};

/// The section's content.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct SpeedupStack {
    /// Number of harts.
    pub harts: usize,
    /// Cycles of all harts in the region of interest: its length times the number of harts, which is what the components add up to.
    /// Harts that sleep at the region's start have more cycles in the totals of the report ([`profile::Evaluation::hart_cycles`]).
    pub cycles: u64,
    /// All components, in one order for all runs.
    pub components: Vec<SpeedupRow>,
    /// How long memory lets loads wait, if that was counted. It is a part of the component `memory`, but not of each of its cycles: what a
    /// load waits in memory may pass while older instructions stall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryTraffic>,
}

/// What memory did in the region for all harts.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct MemoryTraffic {
    /// Bytes read and written, for whatever request.
    pub bytes: u64,
    /// Lines that were read for loads.
    pub loads: u64,
    /// Cycles that these reads waited for a refresh, their bank or the bus, before memory's own latency.
    pub waited: u64,
}

impl MemoryTraffic {
    /// Returns how many cycles a line that a load reads waits in the mean.
    pub(crate) fn mean_wait(&self) -> f64 {
        self.waited as f64 / self.loads.max(1) as f64
    }
}

/// A component of the stack.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct SpeedupRow {
    /// What the harts spend these cycles on.
    pub component: SpeedupComponent,
    /// Cycles of all harts.
    pub cycles: u64,
    /// Share of the cycles of all harts.
    pub share: f64,
}

/// Returns what a component is called, in at most 26 columns.
pub(crate) fn title(component: SpeedupComponent) -> &'static str {
    match component {
        SpeedupComponent::Base => "base",
        SpeedupComponent::SharedCache => "shared cache",
        SpeedupComponent::Memory => "memory",
        SpeedupComponent::OtherHarts => "lines of other harts",
        SpeedupComponent::Stores => "stores",
        SpeedupComponent::Spinning => "spinning",
        SpeedupComponent::Kernel => "kernel",
        SpeedupComponent::KernelSpinning => "spinning in the kernel",
        SpeedupComponent::Ready => "ready, not run",
        SpeedupComponent::Locks => "waiting for locks",
        SpeedupComponent::OtherWaits => "other waits",
        SpeedupComponent::Serial => "serial part",
        SpeedupComponent::Imbalance => "imbalance",
        SpeedupComponent::NoThread => "too few threads",
        SpeedupComponent::Idle => "idle, not known why",
    }
}

/// Returns what a component is, in a line.
pub(crate) fn meaning(component: SpeedupComponent) -> &'static str {
    match component {
        SpeedupComponent::Base => "user mode but what follows",
        SpeedupComponent::SharedCache => "user mode, loads from the last-level cache",
        SpeedupComponent::Memory => "user mode, loads from memory, its queues included",
        SpeedupComponent::OtherHarts => {
            "user mode, loads and atomics that other harts have to answer"
        }
        SpeedupComponent::Stores => "user mode, full store queue: other harts, caches or memory",
        SpeedupComponent::Spinning => "user mode, loops that wait for what other harts write",
        SpeedupComponent::Kernel => "kernel and firmware, their own stalls included",
        SpeedupComponent::KernelSpinning => {
            "kernel and firmware, loops that wait for harts or devices"
        }
        SpeedupComponent::Ready => "idle hart, a thread could run",
        SpeedupComponent::Locks => "idle hart, a thread waits for a lock, condition or barrier",
        SpeedupComponent::OtherWaits => "idle hart, a thread sleeps or waits for input or output",
        SpeedupComponent::Serial => "idle hart, one thread runs alone",
        SpeedupComponent::Imbalance => "idle hart, some threads run, or one that others wait for",
        SpeedupComponent::NoThread => "idle hart: serial part or imbalance, or no thread runs",
        SpeedupComponent::Idle => "idle hart, the guest's kernel does not tell",
    }
}

impl SpeedupStack {
    /// Returns the stack of all harts of a run, and what was counted of memory meanwhile; `evaluation` is of all of them together, also if
    /// there is one alone.
    pub fn new(evaluation: &Evaluation, harts: usize, memory: Option<MemoryTraffic>) -> Self {
        let cycles: HartCycles = evaluation.hart_cycles(harts);
        let whole = cycles.iter().fold(0, |sum: u64, part| sum.saturating_add(*part));
        let rows = SpeedupComponent::ALL.into_iter().zip(cycles);
        Self {
            harts,
            cycles: whole,
            components: rows
                .map(|(component, cycles)| SpeedupRow {
                    component,
                    cycles,
                    share: cycles as f64 / whole.max(1) as f64,
                })
                .collect(),
            memory,
        }
    }

    /// Returns what memory did, in words.
    fn memory_in_words(&self) -> Option<String> {
        let memory = self.memory?;
        let elapsed = self.cycles as f64 / self.harts.max(1) as f64;
        Some(format!(
            "memory: {} lines for loads, each {:.1} cycles in the mean in its queues; {:.2} bytes per cycle",
            count(memory.loads as f64),
            memory.mean_wait(),
            memory.bytes as f64 / elapsed.max(1.0)
        ))
    }

    /// Returns whether anything was executed in user mode. The stack says nothing of a bare-metal program, all of which is machine mode.
    pub(crate) fn has_user_mode(&self) -> bool {
        use SpeedupComponent as Of;
        let of_user =
            [Of::Base, Of::SharedCache, Of::Memory, Of::OtherHarts, Of::Stores, Of::Spinning];
        of_user.into_iter().any(|component| self.cycles_of(component) != 0)
    }

    /// Returns whether each component is there once, as in no stack of an older version, and all together are the stack's cycles, as in no
    /// stack from a damaged file.
    pub(crate) fn is_sound(&self) -> bool {
        let cycles = self.components.iter().map(|row| u128::from(row.cycles));
        self.has_all_components() && cycles.sum::<u128>() == u128::from(self.cycles)
    }

    /// Returns whether each component is there once. A report of an older version tells fewer apart.
    pub(crate) fn has_all_components(&self) -> bool {
        self.components.iter().map(|row| row.component).eq(SpeedupComponent::ALL)
    }

    /// Returns the cycles of a component.
    pub(crate) fn cycles_of(&self, component: SpeedupComponent) -> u64 {
        let row = self.components.iter().find(|row| row.component == component);
        row.map_or(0, |row| row.cycles)
    }

    /// Returns how many of the harts a component takes.
    fn harts_of(&self, row: &SpeedupRow) -> f64 {
        row.share * self.harts as f64
    }

    /// Returns the components that have any cycles.
    fn shown(&self) -> impl Iterator<Item = &SpeedupRow> {
        self.components.iter().filter(|row| row.cycles > 0)
    }
}

impl Section for SpeedupStack {
    fn write(&self, _: &Common, _: &Options, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "\n{:<26}{:>16}{:>8}{:>7}  of {} harts",
            "Speed-up stack", "hart-cycles", "%", "harts", self.harts
        )?;
        for row in self.shown() {
            writeln!(
                out,
                "{:<26}{:>16}{:>8}{:>7.2}  {}",
                title(row.component),
                count(row.cycles as f64),
                percent(row.share),
                self.harts_of(row),
                meaning(row.component),
            )?;
        }
        writeln!(
            out,
            "{:<26}{:>16}{:>8}{:>7.2}",
            "all",
            count(self.cycles as f64),
            percent(1.0),
            self.harts as f64
        )?;
        match self.memory_in_words() {
            Some(words) => writeln!(out, "{words}"),
            None => Ok(()),
        }
    }

    /// Returns a table.
    fn page(&self, _: &Common) -> Markup {
        html! {
            section id="speedup" aria-labelledby="speedup-title" {
                h2 id="speedup-title" { "Speed-up stack" }
                p {
                    "What the cycles of all harts are spent on, each in one component. How many times as fast the program is as on one "
                    "hart, and what takes the rest: "
                    code { "tipsim report ONE-HART THIS" } "."
                }
                div class="scroll" {
                    table {
                        thead {
                            tr {
                                th { "component" }
                                @for title in ["hart-cycles", "%", "harts"] {
                                    th class="number" { (title) }
                                }
                                th { "what it is" }
                            }
                        }
                        tbody {
                            @for row in self.shown() {
                                tr {
                                    td { (title(row.component)) }
                                    td class="number" { (count(row.cycles as f64)) }
                                    td class="number" { (percent(row.share)) }
                                    td class="number" { (format_args!("{:.2}", self.harts_of(row))) }
                                    td { (meaning(row.component)) }
                                }
                            }
                            tr {
                                td { "all" }
                                td class="number" { (count(self.cycles as f64)) }
                                td class="number" { (percent(1.0)) }
                                td class="number" { (format_args!("{:.2}", self.harts as f64)) }
                                td {}
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
}
