//! Cache lines that harts wait for each other for, beside what perf's samples say of them.

pub(crate) mod rules;

use std::fmt::{self, Write};

use guest_samples::SampleFile;
use maud::{Markup, html};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use truth::{Instruction, Line, Sharing, Truth};

use super::markup::lines;
use super::model::Common;
use super::options::Options;
use super::section::Section;
use super::widths::{count, fit, fit_end, fixed};

/// Cache lines that are listed at most: in report.json and on the page (`MAX_LINES`), and in the text (`SHOWN`).
const MAX_LINES: usize = 50;
const SHOWN: usize = 10;
/// Instructions that are listed at most of a cache line.
const MAX_INSTRUCTIONS: usize = 6;

/// The section's content.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ContendedReport {
    /// Cycles of all accesses that other harts' caches answered or had to permit.
    pub cycles: u64,
    /// Samples with a data source, in all of the guest's files.
    pub samples: u64,
    /// Samples with a data source that another hart's cache answered with a modified line (HITM).
    pub hitm_samples: u64,
    /// Contended lines, those that cost most cycles first.
    pub lines: Vec<ContendedLine>,
}

/// A contended cache line.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ContendedLine {
    /// Physical address.
    pub address: String,
    /// The data object that holds the line, if a symbol says.
    pub object: String,
    /// The kind of most sharing misses of the line.
    pub sharing: Sharing,
    /// Misses for data that another hart wrote (true sharing).
    pub true_sharing: u64,
    /// Misses for the line alone, not for data that another hart wrote (false sharing).
    pub false_sharing: u64,
    /// Accesses that another hart's cache answered with a line that it had modified (HITM).
    pub peer_modified: u64,
    /// Accesses that another hart's cache answered with a line that it had not modified.
    pub peer_clean: u64,
    /// Writes before which other harts had to drop their copies.
    pub upgrades: u64,
    /// Cycles of all accesses to the line that other harts' caches answered or had to permit.
    pub cycles: u64,
    /// perf's samples in this line that say HITM.
    pub hitm_samples: u64,
    /// Programs, by hart, with accesses to the line that other harts' caches answered or had to permit.
    pub harts: Vec<ContendedHart>,
    /// Instructions that waited for other harts, those that waited longest first.
    pub instructions: Vec<ContendedInstruction>,
}

/// A program's use of a line on a hart.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ContendedHart {
    /// The hart's number.
    pub hart: u32,
    /// The program, or the kernel.
    pub program: String,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Bytes of the line that the program read, as ranges: `0-7, 16-23`.
    pub read: String,
    /// Bytes of the line that the program wrote, as ranges.
    pub written: String,
}

/// An instruction that waited for other harts.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ContendedInstruction {
    /// The hart's number.
    pub hart: u32,
    /// The function, with the instruction's distance from its start.
    pub name: String,
    /// Loads that waited for other harts.
    pub loads: u64,
    /// Stores that waited for other harts.
    pub stores: u64,
    /// Cycles from issue until the access was done, summed over these loads and stores.
    pub cycles: u64,
}

/// Returns the contended lines of several harts; `None` if there are none.
pub(super) fn contended(truth: &Truth, files: &[SampleFile]) -> Option<ContendedReport> {
    let size = truth.line_bytes.max(1);
    let mut by_line = FxHashMap::<u64, u64>::default();
    let (mut samples, mut hitm_samples) = (0, 0);
    for sample in files.iter().flat_map(|file| &file.samples) {
        let Some(source) = sample.data_src else {
            continue;
        };
        samples += 1;
        if source.is_hitm() {
            hitm_samples += 1;
            // A sample without a physical address counts at its virtual one.
            let address = sample.phys_addr.filter(|pa| *pa != 0).or(sample.addr);
            *by_line.entry(address.unwrap_or(0) / size).or_default() += 1;
        }
    }
    let instructions: FxHashMap<(u32, u32), &Instruction> = truth
        .instructions
        .iter()
        .map(|instruction| ((instruction.hart, instruction.id), instruction))
        .collect();
    let mut lines: Vec<&Line> = truth.lines.iter().filter(|l| l.is_contended()).collect();
    lines.sort_by_key(|line| (std::cmp::Reverse(line.sum(|own| own.peer_cycles)), line.pa));
    let cycles = lines.iter().map(|line| line.sum(|own| own.peer_cycles)).sum();
    lines.truncate(MAX_LINES);
    let contended = |line: &&Line| {
        let mut places = vec![line.pa / size];
        places.extend(line.uses.iter().map(|own| own.counts.va / size));
        places.sort_unstable();
        places.dedup();
        let hitm = places.iter().filter_map(|place| by_line.get(place));
        ContendedLine {
            address: format!("{:#x}", line.pa),
            object: line.object.clone(),
            sharing: line.sharing,
            true_sharing: line.sum(|own| own.true_sharing),
            false_sharing: line.sum(|own| own.false_sharing),
            peer_modified: line.sum(|own| own.peer_modified),
            peer_clean: line.sum(|own| own.peer_clean),
            upgrades: line.sum(|own| own.upgrades),
            cycles: line.sum(|own| own.peer_cycles),
            hitm_samples: hitm.sum(),
            harts: users(truth, line),
            instructions: line
                .exchanges
                .iter()
                .take(MAX_INSTRUCTIONS)
                .map(|exchange| ContendedInstruction {
                    hart: exchange.hart,
                    name: instructions
                        .get(&(exchange.hart, exchange.id))
                        .map_or_else(|| "?".to_owned(), |found| truth.label(found)),
                    loads: exchange.counts.loads,
                    stores: exchange.counts.stores,
                    cycles: exchange.counts.cycles,
                })
                .collect(),
        }
    };
    let lines: Vec<ContendedLine> = lines.iter().map(contended).collect();
    (!lines.is_empty()).then_some(ContendedReport { cycles, samples, hitm_samples, lines })
}

/// Returns the programs, by hart, with accesses to `line` that other harts' caches answered or had to permit.
fn users(truth: &Truth, line: &Line) -> Vec<ContendedHart> {
    let users = line.uses.iter().filter(|own| own.counts.exchanges() > 0);
    let program = |process: Option<u32>| match process {
        Some(process) => truth.processes[process as usize].name.clone(),
        None => "kernel".to_owned(),
    };
    users
        .map(|own| ContendedHart {
            hart: own.hart,
            program: program(own.process),
            loads: own.counts.loads,
            stores: own.counts.stores,
            read: ranges(own.counts.read),
            written: ranges(own.counts.written),
        })
        .collect()
}

/// Returns the bits of a mask as ranges: `0-7, 16-23`.
fn ranges(mut mask: u64) -> String {
    let mut out = Vec::new();
    let mut at = 0;
    while mask != 0 {
        let skipped = mask.trailing_zeros();
        mask >>= skipped;
        let length = mask.trailing_ones();
        let first = at + skipped;
        out.push(match length {
            1 => first.to_string(),
            _ => format!("{first}-{}", first + length - 1),
        });
        mask = mask.checked_shr(length).unwrap_or(0);
        at = first + length;
    }
    out.join(", ")
}

impl ContendedLine {
    fn name(&self) -> &str {
        match self.object.is_empty() {
            true => &self.address,
            false => &self.object,
        }
    }

    /// Returns who uses the line, and which instructions wait for it.
    fn sentences(&self) -> Vec<String> {
        let harts = self.harts.iter().map(ContendedHart::sentence);
        harts.chain(self.instructions.iter().map(ContendedInstruction::sentence)).collect()
    }

    fn sharing(&self) -> &'static str {
        match self.sharing {
            Sharing::None => "none",
            Sharing::True => "true",
            Sharing::False => "false",
        }
    }

    /// Columns of the text and of the page.
    fn cells(&self, all: &ContendedReport) -> [String; 8] {
        let number = |value: u64| count(value as f64);
        [
            self.sharing().to_owned(),
            number(self.true_sharing),
            number(self.false_sharing),
            number(self.peer_modified),
            number(self.upgrades),
            number(self.cycles),
            fixed(self.cycles as f64 / all.cycles.max(1) as f64),
            number(self.hitm_samples),
        ]
    }
}

impl ContendedHart {
    fn sentence(&self) -> String {
        let part = |what, count: u64, bytes: &str| match count {
            0 => None,
            _ => Some(format!("{what} bytes {bytes} ({} times)", fit_count(count))),
        };
        let parts =
            [part("reads", self.loads, &self.read), part("writes", self.stores, &self.written)];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("hart {}, {}: {}", self.hart, self.program, parts.join(", "))
    }
}

impl ContendedInstruction {
    fn sentence(&self) -> String {
        format!(
            "hart {} waits at {}: {} loads, {} stores, {} cycles",
            self.hart,
            fit_end(&self.name, 50),
            fit_count(self.loads),
            fit_count(self.stores),
            fit_count(self.cycles),
        )
    }
}

fn fit_count(value: u64) -> String {
    count(value as f64)
}

impl Section for ContendedReport {
    fn write(&self, _: &Common, _: &Options, out: &mut String) -> fmt::Result {
        writeln!(
            out,
            "\nContended lines: true sharing is for data that another hart wrote, false sharing for the line alone.\n\
             All wait {} cycles for other harts. perf's HITM samples: {} of {} with a data source",
            fit_count(self.cycles),
            fit_count(self.hitm_samples),
            fit_count(self.samples),
        )?;
        writeln!(
            out,
            "{:<38}{:>7}{:>10}{:>10}{:>10}{:>10}{:>14}{:>7}{:>12}",
            "Line", "sharing", "true", "false", "HITM", "upgrades", "cycles", "%", "perf's HITM"
        )?;
        for line in self.lines.iter().take(SHOWN) {
            let [sharing, own, other, hitm, upgrades, cycles, share, samples] = line.cells(self);
            writeln!(
                out,
                "{:<38}{sharing:>7}{own:>10}{other:>10}{hitm:>10}{upgrades:>10}{cycles:>14}{share:>7}{samples:>12}",
                fit(line.name(), 37),
            )?;
            for hart in &line.harts {
                writeln!(out, "    {}", fit(&hart.sentence(), 115))?;
            }
            for instruction in line.instructions.iter().take(2) {
                writeln!(out, "    {}", fit(&instruction.sentence(), 115))?;
            }
        }
        Ok(())
    }

    fn page(&self, _: &Common) -> Markup {
        html! {
            section id="contended" {
                h2 { "Contended lines" }
                p {
                    "True sharing is for data that another hart wrote, false sharing for the line alone (Dubois et al., ISCA 1993). \
                     perf's HITM samples: " (fit_count(self.hitm_samples)) " of " (fit_count(self.samples)) " with a data source."
                }
                table {
                    thead {
                        tr {
                            @for title in [
                                "line", "sharing", "true", "false", "HITM", "upgrades", "cycles", "%", "perf's HITM", "who",
                            ] {
                                th { (title) }
                            }
                        }
                    }
                    tbody {
                        @for line in &self.lines {
                            tr {
                                td { (line.name()) }
                                @for cell in line.cells(self) {
                                    td { (cell) }
                                }
                                td { (lines(&line.sentences())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn masks_are_ranges() {
        assert_eq!(ranges(0), "");
        assert_eq!(ranges(0xff), "0-7");
        assert_eq!(ranges(1 << 63 | 0xff00 | 1), "0, 8-15, 63");
        assert_eq!(ranges(u64::MAX), "0-63");
    }
}
