//! The section as text.

use std::fmt::{self, Write};

use maud::Markup;

use super::{ChainLink, LoopRow, LoopsReport, page};
use crate::model::Common;
use crate::options::Options;
use crate::places::{fit_place, place};
use crate::section::Section;
use crate::widths::{count, fit, fixed};

/// Loops of the text, those whose instructions follow, and how many of these.
const SHOWN: usize = 8;
const WITH_CHAIN: usize = 1;
const MAX_LINKS: usize = 10;

impl LoopRow {
    /// `function+0x12, file.c:10`.
    pub(super) fn place(&self) -> String {
        place(&self.label, self.source.as_deref(), self.library_source.as_deref())
    }

    pub(super) fn trips_in_words(&self) -> String {
        match self.trips {
            Some(trips) if trips >= 100.0 => count(trips),
            Some(trips) => format!("{trips:.1}"),
            None => "-".to_owned(),
        }
    }

    pub(super) fn range_in_words(&self) -> String {
        let [least, median, most] = self.range;
        format!("{least}/{median}/{most}")
    }
}

impl ChainLink {
    fn line(&self) -> String {
        let (source, library) = (self.source.as_deref(), self.library_source.as_deref());
        let place = fit_place(&self.label, source, library, 44);
        format!(
            "{:>12.2}  {:<32}{:<26}{}",
            self.cycles,
            fit(&self.text, 31),
            self.cause.name(),
            place,
        )
    }
}

impl LoopsReport {
    /// What the numbers are from, in a sentence.
    pub(super) fn lead(&self) -> String {
        format!(
            "From {} excerpts of the execution with all stages ({} instructions, {} cycles); shares by the Oracle",
            self.excerpts,
            count(self.instructions as f64),
            count(self.cycles as f64),
        )
    }
}

impl Section for LoopsReport {
    fn write(&self, common: &Common, options: &Options, out: &mut String) -> fmt::Result {
        let wanted = |row: &&LoopRow| match &options.process {
            Some(name) => row.process == 0 || common.processes[row.process].name == *name,
            None => true,
        };
        writeln!(out, "\nLoops. {}.", self.lead())?;
        writeln!(
            out,
            "{:<44}{:>6}{:>13}{:>8}{:>7}{:>9}{:>15}{:>7}{:>7}",
            "Loop, % of the process's cycles",
            "%",
            "iterations",
            "trips",
            "insts",
            "cycles",
            "min/med/max",
            "width",
            "ports"
        )?;
        for (at, row) in self.loops.iter().filter(wanted).take(SHOWN).enumerate() {
            writeln!(
                out,
                "{:<44}{:>6}{:>13}{:>8}{:>7.1}{:>9.2}{:>15}{:>7.2}{:>7.2}",
                fit_place(&row.label, row.source.as_deref(), row.library_source.as_deref(), 43),
                fixed(row.share),
                count(row.iterations),
                row.trips_in_words(),
                row.instructions_per_iteration,
                row.cycles_per_iteration,
                row.range_in_words(),
                row.least.decode,
                row.least.ports(),
            )?;
            writeln!(out, "    critical path: {}", row.bound())?;
            if at < WITH_CHAIN {
                // The instructions that the path goes through, and its cycles at each in an iteration.
                for link in row.chain.iter().take(MAX_LINKS) {
                    writeln!(out, "{}", link.line())?;
                }
            }
        }
        Ok(())
    }

    fn page(&self, common: &Common) -> Markup {
        page::page(self, common)
    }
}
