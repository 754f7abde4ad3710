//! The verdict: what a process spends its cycles on, its most expensive places, and what is tried against such. The Oracle's cycles,
//! by [`Component`].

use std::fmt::Write;

use profile::{Component, CycleStack, Evaluation};
use serde::Serialize;

use super::gather::Rows;
use super::html::{escape, words};
use super::model::Report;
use super::rows::RowBuilder;
use super::text::Options;
use super::text::fit::{fit, fit_label, fit_name, fixed, wrap};

/// Causes that are named, and the share of the process from which on one is.
const MAX_CAUSES: usize = 4;
const NOTICEABLE: f64 = 0.05;
/// Share of a function from which on a wait is what is said of it, and not that it commits.
const WORTH_A_WORD: f64 = 0.2;
/// Processes are named that have this share of the cycles of the one with most.
const COMPARABLE: f64 = 0.2;
/// Places that are named.
const MAX_PLACES: usize = 3;

/// What a process spends its cycles on.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Index into [`processes`](Report::processes).
    pub process: usize,
    /// What takes most of its cycles, the most expensive first.
    pub causes: Vec<Cause>,
    /// Its most expensive functions.
    pub places: Vec<Place>,
}

/// A reason for cycles.
#[derive(Clone, Debug, Serialize)]
pub struct Cause {
    /// Which.
    pub component: Component,
    /// Share of the process's cycles.
    pub share: f64,
}

/// A function, and what it waits for.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// Its name.
    pub function: String,
    /// Share of the process's cycles.
    pub share: f64,
    /// What takes most of them,
    pub cause: Cause,
    /// and where: the instruction with most of these cycles (its function, with the distance from the start),
    pub label: String,
    /// its address, in hexadecimal,
    pub pc: String,
    /// its disassembly,
    pub text: String,
    /// and `file:line`, if known.
    pub source: Option<String>,
    /// What is tried against it.
    pub advice: &'static str,
}

/// The verdict on the process at `at` among the gathered.
pub(super) fn verdict(
    evaluation: &Evaluation,
    at: usize,
    rows: &Rows,
    builder: &mut RowBuilder<'_>,
) -> Verdict {
    let whole = rows.oracle_total.max(1) as f64;
    let keys = &rows.function;
    let mut all = CycleStack::default();
    let mut functions = vec![CycleStack::default(); keys.count];
    // By row, where there is any.
    let mut stacks: Vec<(usize, CycleStack)> = Vec::new();
    for (inst, stack) in evaluation.stacks.of(rows.process) {
        if let Ok(row) = rows.insts.binary_search(&inst) {
            all += stack;
            functions[keys.of_row[row] as usize] += stack;
            stacks.push((row, stack));
        }
    }
    let mut order: Vec<usize> = (0..keys.count).collect();
    order.sort_by_key(|&key| std::cmp::Reverse(functions[key].total()));
    let places = order.into_iter().take(MAX_PLACES).filter_map(|key| {
        let component = worst(&functions[key]);
        let own = { stacks.iter() }.filter(|(row, _)| keys.of_row[*row] as usize == key);
        let (row, _) =
            own.max_by_key(|(row, stack)| (stack[component], std::cmp::Reverse(*row)))?;
        let made = builder.instruction(rows, at, *row);
        let text = made.text.replace('\t', " ");
        Some(Place {
            share: functions[key].total() as f64 / whole,
            cause: Cause {
                component,
                share: functions[key][component] as f64 / whole,
            },
            advice: advice(component, &made.function, &text),
            function: made.function,
            label: made.label,
            pc: made.pc,
            text,
            source: made.source,
        })
    });
    let mut causes: Vec<Cause> = Component::ALL
        .into_iter()
        .map(|component| Cause {
            component,
            share: all[component] as f64 / whole,
        })
        .filter(|cause| cause.share >= NOTICEABLE)
        .collect();
    causes.sort_by(|a, b| b.share.total_cmp(&a.share));
    causes.truncate(MAX_CAUSES);
    Verdict {
        process: at + 1,
        places: places.filter(|place| place.share >= NOTICEABLE).collect(),
        causes,
    }
}

/// The component to say something about: the largest wait, unless next to all cycles commit.
fn worst(stack: &CycleStack) -> Component {
    let waits = { Component::ALL.into_iter() }.filter(|c| *c != Component::Execution);
    let by_units = |c: &Component| (stack[*c], std::cmp::Reverse(*c));
    let largest = waits.max_by_key(by_units).unwrap_or(Component::Execution);
    match stack[largest] as f64 >= WORTH_A_WORD * stack.total() as f64 {
        true => largest,
        false => Component::Execution,
    }
}

/// What a process does in the cycles of a component.
const fn doing(component: Component) -> &'static str {
    match component {
        Component::Execution => "committing instructions",
        Component::Alu => "waiting for operands or a unit",
        Component::LoadL1 => "waiting for data of the L1",
        Component::LoadL2 => "waiting for data of the L2",
        Component::LoadLlc => "waiting for data of the last-level cache",
        Component::LoadDram => "waiting for data of memory",
        Component::LoadPeer => "waiting for lines of other harts",
        Component::Store => "waiting for a store's address or data",
        Component::Divider => "waiting for a divider",
        Component::Serialize => "waiting for instructions that serialise",
        Component::Device => "waiting for device registers",
        Component::FrontEnd => "waiting for instructions to be fetched",
        Component::FrontEndCache => "waiting for the instruction cache",
        Component::FrontEndTlb => "waiting for the instruction TLB",
        Component::FrontEndStores => "waiting for room in the store queue",
        Component::Mispredict => "starting anew after mispredicted branches",
        Component::Flush => "starting anew after flushes",
        Component::MemoryOrdering => "starting anew after loads that overtook a store",
        Component::Exception => "starting anew after exceptions",
        Component::Interrupt => "starting anew after interrupts",
    }
}

/// What is tried against cycles of a component in a function, at such an instruction.
fn advice(component: Component, function: &str, text: &str) -> &'static str {
    let name = text.split_whitespace().next().unwrap_or_default();
    let divides = ["div", "rem", "fdiv", "fsqrt", "c.div"]
        .iter()
        .any(|start| name.starts_with(start));
    match component {
        // Each stub has one target, and nothing in it to improve.
        _ if symbols::is_plt(function) => {
            "calls within a library that do not go through its PLT: -fvisibility=hidden, -Bsymbolic-functions; -fno-plt for others"
        }
        Component::Execution => {
            "fewer instructions: a better algorithm, -O3, -march with Zba, Zbb, Zbs"
        }
        Component::Alu | Component::Divider if divides => {
            "multiply by a reciprocal, divide once, or take shifts"
        }
        Component::Alu | Component::Divider => {
            "shorter chains of dependent operations: several accumulators, unrolling"
        }
        Component::LoadL1 => {
            "loads that do not wait for each other: keep values in registers, indices instead of pointers"
        }
        Component::LoadL2 | Component::LoadLlc => {
            "data that fits the caches: blocking, smaller types, fields that are used together side by side"
        }
        Component::LoadDram => {
            "less data, or in the order of memory; prefetch (__builtin_prefetch) where addresses are known early"
        }
        Component::LoadPeer => {
            "data of its own for each thread, in lines of its own (alignas(64)); fewer writes to what others read; coarser locks"
        }
        Component::Store => "what is stored earlier, or not at all",
        Component::FrontEndStores => {
            "fewer or wider stores, to lines that are in the cache already"
        }
        Component::Serialize | Component::Flush if is_fp_state(name) => {
            "no saving of FP flags: -fno-trapping-math -fno-math-errno, conversions instead of ceil, floor, rint"
        }
        Component::Serialize | Component::Flush if name.starts_with("fence") => {
            "fewer or weaker fences: acquire and release instead of sequential consistency"
        }
        Component::Serialize | Component::Flush => {
            "fewer of these instructions: take them out of loops"
        }
        Component::Device => "fewer accesses to devices: larger requests",
        Component::FrontEnd => {
            "straighter code: -O2 with a profile (AutoFDO), fewer taken branches"
        }
        Component::FrontEndCache | Component::FrontEndTlb => {
            "less or better placed code: -Os for what is cold, layout by a profile (AutoFDO, BOLT)"
        }
        Component::Mispredict if is_indirect(name) => {
            "fewer targets of one jump: its commonest ones by branches before it, calls that the compiler can see through (final, templates)"
        }
        Component::Mispredict => {
            "arithmetic or conditional moves instead of the branch (Zicond), or data in an order that it can learn"
        }
        Component::MemoryOrdering => {
            "do not load what was stored just before by another address: keep it in a register"
        }
        Component::Exception => {
            "fewer system calls and page faults: larger buffers, memory that is used again"
        }
        Component::Interrupt => "nothing in the program: interrupts are the machine's",
    }
}

/// It goes where a register says.
fn is_indirect(name: &str) -> bool {
    matches!(name, "jalr" | "jr" | "c.jalr" | "c.jr")
}

/// It reads or writes the FP status, which waits for all before it.
fn is_fp_state(name: &str) -> bool {
    let names = ["frflags", "fsflags", "frcsr", "fscsr", "frrm", "fsrm"];
    names.iter().any(|start| name.starts_with(start))
}

/// The file's own name, with its line.
fn short(source: &str) -> &str {
    source.rsplit('/').next().unwrap_or(source)
}

impl Verdict {
    /// What the cycles go to, as the end of a sentence.
    fn causes_in_words(&self) -> String {
        let words: Vec<String> = self.causes.iter().map(Cause::in_words).collect();
        words.join(", ")
    }
}

impl Cause {
    fn in_words(&self) -> String {
        format!("{} % {}", fixed(self.share), doing(self.component))
    }
}

impl Place {
    fn in_words(&self) -> String {
        let at = match &self.source {
            Some(source) => format!("{}, {}", fit_label(&self.label, 40), short(source)),
            None => fit_label(&self.label, 40),
        };
        format!(
            "{} %  {}: {}, mostly at `{}` ({at})",
            fixed(self.share),
            fit_name(&self.function, 60),
            self.cause.in_words(),
            fit(&self.text, 40),
        )
    }
}

impl Report {
    fn shown_verdicts(&self, options: &Options) -> impl Iterator<Item = &Verdict> {
        let wanted = options.process.clone();
        let share = |verdict: &Verdict| self.processes[verdict.process].share;
        let most = self.verdict.iter().map(share).fold(0.0, f64::max);
        let named = move |verdict: &&Verdict| match &wanted {
            Some(name) => self.processes[verdict.process].name == *name,
            None => share(verdict) >= COMPARABLE * most,
        };
        { self.verdict.iter() }
            .filter(named)
            .take(options.processes.max(1))
    }

    /// What binds the processes in focus, in words.
    pub fn write_verdict(&self, out: &mut String, options: &Options) -> std::fmt::Result {
        for verdict in self.shown_verdicts(options) {
            let process = &self.processes[verdict.process];
            let line = format!(
                "{}: {:.1} M cycles: {}",
                fit(&process.name, 40),
                process.cycles / 1e6,
                verdict.causes_in_words()
            );
            writeln!(out)?;
            for line in wrap(&line, 116) {
                writeln!(out, "{line}")?;
            }
            if let Some(words) = self.waiting_in_words(verdict.process) {
                for line in wrap(&words, 114) {
                    writeln!(out, "  {line}")?;
                }
            }
            for place in &verdict.places {
                for (n, line) in wrap(&place.in_words(), 112).iter().enumerate() {
                    writeln!(out, "{}{line}", if n == 0 { "  " } else { "         " })?;
                }
                if let Some(words) = self.loop_in_words(verdict.process, &place.function) {
                    for line in wrap(&words, 108) {
                        writeln!(out, "         {line}")?;
                    }
                }
                writeln!(out, "         try: {}", place.advice)?;
            }
        }
        Ok(())
    }

    /// The same for the page.
    pub(super) fn verdict_html(&self) -> String {
        if self.verdict.is_empty() {
            return String::new();
        }
        let mut out = "<section id=\"verdict\" aria-labelledby=\"verdict-title\"><h2 id=\"verdict-title\">Verdict</h2>".to_owned();
        for verdict in self.shown_verdicts(&Options::default()) {
            let process = &self.processes[verdict.process];
            let _ = write!(
                out,
                "<p><b>{}</b>: {:.1} M cycles: {}{}.</p><ol>",
                escape(&process.name),
                process.cycles / 1e6,
                words(&verdict.causes_in_words()),
                { self.waiting_in_words(verdict.process) }
                    .map_or_else(String::new, |text| format!("; {}", words(&text))),
            );
            for place in &verdict.places {
                let at = place.source.as_deref().map_or(String::new(), |source| {
                    format!(", {}", escape(short(source)))
                });
                let function = escape(&place.function);
                let _ = write!(
                    out,
                    "<li><a href=\"#code\" data-process=\"{}\" data-function=\"{function}\" data-pc=\"{}\" title=\"{function}\">{}</a>, {}: {}, mostly at <code>{}</code> (<span title=\"{}\">{}</span>{at}){}. Try: {}.</li>",
                    verdict.process,
                    place.pc,
                    escape(&fit_name(&place.function, 60)),
                    words(&format!("{} %", fixed(place.share))),
                    words(&place.cause.in_words()),
                    escape(&place.text),
                    escape(&place.label),
                    escape(&fit_label(&place.label, 60)),
                    { self.loop_in_words(verdict.process, &place.function) }
                        .map_or_else(String::new, |text| format!("; {}", words(&text))),
                    place.advice
                );
            }
            out += "</ol>";
        }
        out + "</section>"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_of_the_instruction() {
        let advice = |component, text| advice(component, "f", text);
        assert!(advice(Component::Flush, "fsflags zero,t1").contains("FP flags"));
        assert!(advice(Component::Flush, "fence rw,rw").contains("fences"));
        assert!(advice(Component::Mispredict, "jalr a3").contains("targets"));
        assert!(advice(Component::Mispredict, "bnez a3,8").contains("Zicond"));
        assert!(advice(Component::Alu, "fdiv.d fa0,fa1,fa2").contains("reciprocal"));
        assert!(advice(Component::Alu, "add a0,a1,a2").contains("accumulators"));
        let stub = super::advice(
            Component::Mispredict,
            "[plt of libnode.so.115]",
            "jalr t1,t3",
        );
        assert!(stub.contains("-fno-plt"), "{stub}");
    }

    #[test]
    fn a_wait_is_told_before_what_commits() {
        let mut stack = CycleStack::default();
        stack[Component::Execution] = 60;
        stack[Component::Mispredict] = 25;
        stack[Component::Alu] = 15;
        assert_eq!(worst(&stack), Component::Mispredict);
        stack[Component::Mispredict] = 15;
        assert_eq!(worst(&stack), Component::Execution);
    }

    #[test]
    fn every_component_has_words_of_its_own() {
        let words: std::collections::BTreeSet<_> = Component::ALL.map(doing).into_iter().collect();
        assert_eq!(words.len(), Component::COUNT);
    }
}
