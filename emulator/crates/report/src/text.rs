//! The report as text: tables of at most 120 columns.

mod errors;
mod hot;

use std::fmt::Write;

use profile::{CATEGORIES, Margin};

use super::margins::{self, MARGIN_TITLE, Margins};
use super::options::Options;
use super::printable::printable_lines;
use super::report::Report;
use super::section::TextPosition;
use super::tables::CommandRow;
use super::widths::{count, fit, fixed, percent, wrap};
use super::{sensitivity, tea, topdown};

impl Report {
    /// Returns the report as text.
    pub fn text(&self, options: &Options) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_text(&mut out, options);
        printable_lines(&out).into_owned()
    }

    fn write_text(&self, out: &mut String, options: &Options) -> std::fmt::Result {
        for notice in self.common.notices() {
            writeln!(out, "{notice}\n")?;
        }
        if let Some(name) = self.common.meta.name() {
            writeln!(out, "{}", fit(name, 120))?;
            writeln!(out)?;
        }
        let totals = &self.common.totals;
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
        let last = match self.common.is_sampled() {
            true => "± 95 %: how far the error may be off by chance.",
            false => "Publ.: published mean of 27 programs at 4 kHz (TIP, MICRO'21).",
        };
        writeln!(
            out,
            "\nError: share of the cycles given to the wrong symbol. Sampling: what as many random samples of the truth\n\
             would leave of it. {last}"
        )?;
        let mut wanted = match &options.process {
            Some(name) => (0..self.common.processes.len())
                .filter(|index| self.common.processes[*index].name == *name)
                .collect(),
            None => self.common.focus_by_command(),
        };
        wanted.truncate(options.processes.max(1));
        // One process is the same as all.
        if options.process.is_none() && self.common.processes.len() != 2 {
            wanted.push(0);
        }
        let shown = wanted.clone();
        for index in wanted {
            writeln!(out)?;
            let command = self.common.command_of(index).filter(|row| row.members.len() > 1);
            if let Some(command) = command {
                writeln!(
                    out,
                    "{} is the most expensive of the {} processes of {}, which have {} % of all cycles together.",
                    fit(&self.common.processes[index].name, 40),
                    command.count,
                    fit(&command.name, 16),
                    fixed(command.share),
                )?;
            }
            errors::write(out, &self.common, index, !self.sections.sensitivity.is_empty())?;
            sensitivity::write_split(out, &self.common, index)?;
            hot::write(out, &self.common, index, options)?;
            if let Some(tea) = &self.sections.tea {
                tea::text::write(out, &self.common, tea, index, options.instructions)?;
            }
        }
        if let Some(tree) = &self.sections.top_down {
            let mut shown = shown;
            if !shown.contains(&0) {
                shown.push(0);
            }
            writeln!(out)?;
            topdown::text::write(out, tree, &shown, options.functions)?;
        }
        self.write_sections(out, TextPosition::Tail, options)?;
        if !self.common.warnings.is_empty() {
            writeln!(out, "\nWarnings")?;
            for warning in &self.common.warnings {
                for line in wrap(warning, 116) {
                    writeln!(out, "  {line}")?;
                }
            }
        }
        Ok(())
    }

    fn write_sections(
        &self,
        out: &mut String,
        place: TextPosition,
        options: &Options,
    ) -> std::fmt::Result {
        let mut sections = self.sections.at(place);
        sections.try_for_each(|section| section.write(&self.common, options, out))
    }

    fn write_processes(&self, out: &mut String, options: &Options) -> std::fmt::Result {
        writeln!(out, "{:>90}", "cycle stack, %")?;
        write!(out, "{:<24}{:>15}{:>8}  {:<8}", "Process", "cycles", "%", "class")?;
        for category in CATEGORIES {
            write!(out, "{:>9}", fit(short(category), 8))?;
        }
        writeln!(out)?;
        let mut hidden = 0;
        let all = &self.common.processes[0];
        let margins = |margins: &Option<Margins>, of_stack: &Option<[Margin; 7]>| {
            Some((margins.as_ref()?.share, (*of_stack)?))
        };
        let of_all = margins(&all.margins, &all.stack_margins);
        let mut lines =
            vec![(all.name.clone(), all.cycles, all.share, all.class, all.stack, of_all)];
        for command in &self.common.commands {
            let asked = |index: &usize| {
                Some(&self.common.processes[*index].name) == options.process.as_ref()
            };
            if command.share < options.min_share && !command.members.iter().any(asked) {
                hidden += command.count;
                continue;
            }
            let CommandRow { cycles, share, class, stack, .. } = command;
            let own = margins(&command.margins, &command.stack_margins);
            lines.push((command.short_title(23), *cycles, *share, *class, *stack, own));
        }
        for (name, cycles, share, class, stack, margins) in lines {
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
            if self.common.is_sampled() {
                let share = margins::percent(margins.map(|(share, _)| share));
                write!(out, "  {MARGIN_TITLE:<37}{share:>8}  {:<8}", "")?;
                for category in 0..stack.len() {
                    let margin = margins::percent(margins.map(|(_, stack)| stack[category]));
                    write!(out, "{margin:>9}")?;
                }
                writeln!(out)?;
            }
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
