//! The report as text: tables of at most 120 columns.

mod errors;
pub(super) mod fit;
mod hot;
mod tea;
mod topdown;

use std::fmt::Write;

use profile::CATEGORIES;

use super::model::Report;
use super::sections::TextPosition;
use super::tables::CommandRow;
use super::{printable_lines, sensitivity};
use fit::{count, fit, percent};

pub use fit::fit_name as short_name;

/// How much of a report the text shows.
#[derive(Clone, Debug)]
pub struct Options {
    /// Functions per process.
    pub functions: usize,
    /// Instructions per process.
    pub instructions: usize,
    /// Disagreements per profiler.
    pub disagreements: usize,
    /// Disagreements in words, per profiler.
    pub sentences: usize,
    /// Processes that get tables of their own: the first of [`Report::focus`].
    pub processes: usize,
    /// Share of all cycles from which on a process is listed.
    pub min_share: f64,
    /// Show only this process.
    pub process: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            functions: 12,
            instructions: 16,
            disagreements: 2,
            sentences: 2,
            processes: 3,
            min_share: 0.002,
            process: None,
        }
    }
}

impl Report {
    /// The report as text.
    pub fn text(&self, options: &Options) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_text(&mut out, options);
        printable_lines(&out).into_owned()
    }

    fn write_text(&self, out: &mut String, options: &Options) -> std::fmt::Result {
        for notice in self.notices() {
            writeln!(out, "{notice}\n")?;
        }
        if let Some(name) = self.meta.get("name").and_then(|name| name.as_str()) {
            writeln!(out, "{}", fit(name, 120))?;
            writeln!(out)?;
        }
        let totals = &self.totals;
        if let Some(elapsed) = totals.elapsed {
            let ms = elapsed.ms.map_or_else(String::new, |ms| format!(", {ms:.3} ms"));
            writeln!(out, "{} cycles elapsed{ms}", count(elapsed.cycles as f64))?;
        }
        writeln!(
            out,
            "{} cycles ({} idle), {} instructions, {:.2} per cycle, {} traps",
            count(totals.cycles as f64),
            count(totals.idle as f64),
            count(totals.instructions as f64),
            totals.ipc,
            count(totals.traps as f64),
        )?;
        self.write_sections(out, TextPosition::First, options)?;
        self.write_sections(out, TextPosition::Code, options)?;
        writeln!(out)?;
        self.write_processes(out, options)?;
        self.write_sections(out, TextPosition::Head, options)?;
        writeln!(
            out,
            "\nError: share of the cycles given to the wrong symbol. Sampling: what as many random samples of the truth\n\
             would leave of it. Publ.: published mean of 27 programs at 4 kHz (TIP, MICRO'21)."
        )?;
        let mut wanted = match &options.process {
            Some(name) => (0..self.processes.len())
                .filter(|index| self.processes[*index].name == *name)
                .collect(),
            None => self.focus_by_command(),
        };
        wanted.truncate(options.processes.max(1));
        // One process is the same as all.
        if options.process.is_none() && self.processes.len() != 2 {
            wanted.push(0);
        }
        let shown = wanted.clone();
        for index in wanted {
            writeln!(out)?;
            let command = self.command_of(index).filter(|row| row.members.len() > 1);
            if let Some(command) = command {
                writeln!(
                    out,
                    "{} is the most expensive of the {} processes of {}, which have {} % of all cycles together.",
                    fit(&self.processes[index].name, 40),
                    command.count,
                    fit(&command.name, 16),
                    fit::fixed(command.share),
                )?;
            }
            errors::write(out, self, index)?;
            sensitivity::write_split(out, self, index)?;
            hot::write(out, self, index, options)?;
            if let Some(tea) = &self.tea {
                tea::write(out, self, tea, index, options.instructions)?;
            }
        }
        if let Some(tree) = &self.top_down {
            let mut shown = shown;
            if !shown.contains(&0) {
                shown.push(0);
            }
            writeln!(out)?;
            topdown::write(out, tree, &shown, options.functions)?;
        }
        self.write_sections(out, TextPosition::Tail, options)?;
        if !self.warnings.is_empty() {
            writeln!(out, "\nWarnings")?;
            for warning in &self.warnings {
                for line in fit::wrap(warning, 116) {
                    writeln!(out, "  {line}")?;
                }
            }
        }
        Ok(())
    }

    fn write_processes(&self, out: &mut String, options: &Options) -> std::fmt::Result {
        writeln!(out, "{:>90}", "cycle stack, %")?;
        write!(out, "{:<24}{:>15}{:>8}  {:<8}", "Process", "cycles", "%", "class")?;
        for category in CATEGORIES {
            write!(out, "{:>9}", fit(short(category), 8))?;
        }
        writeln!(out)?;
        let mut hidden = 0;
        let all = &self.processes[0];
        let mut lines = vec![(all.name.clone(), all.cycles, all.share, all.class, all.stack)];
        for command in &self.commands {
            let asked =
                |index: &usize| Some(&self.processes[*index].name) == options.process.as_ref();
            if command.share < options.min_share && !command.members.iter().any(asked) {
                hidden += command.count;
                continue;
            }
            let CommandRow { cycles, share, class, stack, .. } = command;
            lines.push((command.short_title(23), *cycles, *share, *class, *stack));
        }
        for (name, cycles, share, class, stack) in lines {
            write!(
                out,
                "{:<24}{:>15}{:>8}  {:<8}",
                fit(&name, 23),
                count(cycles),
                percent(share),
                class
            )?;
            for share in stack {
                write!(out, "{:>9}", percent(share))?;
            }
            writeln!(out)?;
        }
        if hidden > 0 {
            writeln!(out, "and {hidden} more below {} %", percent(options.min_share))?;
        }
        Ok(())
    }
}

/// Column titles of at most eight characters.
fn short(category: &str) -> &str {
    match category {
        "Execution" => "execute",
        "ALU stall" => "ALU",
        "Load stall" => "load",
        "Store stall" => "store",
        "Front-end" => "frontend",
        "Mispredict" => "mispred.",
        _ => "flush",
    }
}
