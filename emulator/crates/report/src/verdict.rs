//! The verdict: what a process spends its cycles on (the Oracle's cycles, by [`Component`]), its most expensive places, and
//! what is tried against them.

mod advice;
pub(crate) mod rules;

use std::fmt::Write;

use commit_trace::InstId;
use maud::{Markup, html};
use profile::{Component, CycleStack};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use symbols::{FunctionId, Symbols};

use super::gather::Rows;
use super::inclusive::InclusiveRow;
use super::interpreted::InterpretedFunction;
use super::loops::{LoopRow, LoopsReport};
use super::markup::words;
use super::model::Common;
use super::options::Options;
use super::places::fit_place;
use super::rows::{Code, RowBuilder, Selection};
use super::section::Section;
use super::tables::CommandRow;
use super::thread_path::ThreadPathReport;
use super::waiting::WaitingReport;
use super::widths::{fit, fit_name, fixed, wrap};
pub(crate) use advice::Owner;

/// Causes that are named at most (`MAX_CAUSES`), and the least share of the command's cycles of a named one (`NOTICEABLE`).
const MAX_CAUSES: usize = 4;
const NOTICEABLE: f64 = 0.05;
/// Least share of a function's cycles for a wait to be named as its cause, and not that it commits.
const WORTH_A_WORD: f64 = 0.2;
/// Least cycles of a named command, as a share of the cycles of the command with most.
const COMPARABLE: f64 = 0.2;
/// Places that are named at most.
const MAX_PLACES: usize = 3;

/// What the processes of a command spend their cycles on. Shares are of the cycles of all these processes.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Verdict {
    /// The command's most expensive process, as an index into [`processes`](Common::processes).
    pub process: usize,
    /// The command.
    pub command: String,
    /// Causes that take most of the command's cycles, the most expensive first.
    pub causes: Vec<Cause>,
    /// The command's most expensive functions.
    pub places: Vec<Place>,
    /// Functions of the program's own sources with all that they call, if calls were followed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inclusive: Vec<InclusiveRow>,
    /// Most expensive functions of the program that an interpreter executes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interpreted: Vec<InterpretedFunction>,
    /// What the threads of the command's processes wait for, in a sentence, if it is worth one.
    #[serde(skip)]
    pub(crate) waiting: Option<String>,
    /// What the critical path over threads says of the command's processes, in a sentence, if it is worth one.
    #[serde(skip)]
    pub(crate) path: Option<String>,
}

/// A reason for cycles.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Cause {
    /// The component of the cycle stack.
    pub component: Component,
    /// Share of the command's cycles.
    pub share: f64,
}

/// A function, and what it waits for.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Place {
    /// The most expensive process that has the function, as an index into [`processes`](Common::processes).
    pub process: usize,
    /// The function's name.
    pub function: String,
    /// Share of the command's cycles.
    pub share: f64,
    /// The cause of most of the function's cycles.
    pub cause: Cause,
    /// The instruction with most of the cause's cycles: its function, with the distance from the start.
    pub label: String,
    /// Address of the instruction, in hexadecimal.
    pub pc: String,
    /// Disassembly of the instruction.
    pub text: String,
    /// Source of the instruction, `file:line`, if known: the innermost line of the program's own files.
    pub source: Option<String>,
    /// Source of library code that was inlined there, `file:line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library_source: Option<String>,
    /// The owner of the function's code.
    pub owner: Owner,
    /// Advice on what to try against the function's cycles: by the critical path of its loop if it has one, else by its cause.
    pub advice: String,
    /// The function's loop, and what bounds it, in words, if excerpts show one.
    #[serde(skip)]
    pub(crate) in_loop: Option<String>,
}

/// Adds up what the processes of commands spend their cycles on.
pub(super) struct VerdictBuilder<'a> {
    selection: &'a Selection<'a>,
    commands: Vec<CommandSums>,
}

/// An instruction in any process: its function, and its address in the file.
type CodePlace = (FunctionId, u64);

/// The cycles of a command's processes.
struct CommandSums {
    name: String,
    /// The first process of the command, as an index into the gathered ones.
    process: usize,
    /// Units by the Oracle.
    total: u64,
    functions: FxHashMap<FunctionId, CycleStack>,
    instructions: FxHashMap<CodePlace, CodeSums>,
}

/// The cycles of an instruction in a command's processes.
struct CodeSums {
    stack: CycleStack,
    /// The first process with cycles of the instruction, as an index into the gathered ones.
    process: usize,
    /// The instruction's number in that process.
    inst: InstId,
    /// The number of the instruction's location.
    location: usize,
}

impl<'a> VerdictBuilder<'a> {
    pub(crate) fn new(selection: &'a Selection<'a>) -> Self {
        Self { selection, commands: Vec::new() }
    }

    /// Adds the process at index `at` of the gathered ones, which runs `command`.
    pub(crate) fn add(&mut self, at: usize, command: &str, rows: &Rows) {
        let Selection { evaluation, symbols, .. } = self.selection;
        let known = self.commands.iter().position(|sums| sums.name == command);
        let known = known.unwrap_or_else(|| {
            self.commands.push(CommandSums {
                name: command.to_owned(),
                process: at,
                total: 0,
                functions: FxHashMap::default(),
                instructions: FxHashMap::default(),
            });
            self.commands.len() - 1
        });
        let sums = &mut self.commands[known];
        sums.total = sums.total.saturating_add(rows.oracle_total);
        for (inst, stack) in evaluation.stacks.of(rows.process) {
            let Ok(row) = rows.insts.binary_search(&inst) else {
                continue;
            };
            let place = rows.places[row] as usize;
            let location = &symbols.locations[place];
            *sums.functions.entry(location.function).or_default() += stack;
            let code = (location.function, location.offset);
            let known = sums.instructions.entry(code).or_insert(CodeSums {
                stack: CycleStack::default(),
                process: at,
                inst,
                location: place,
            });
            known.stack += stack;
        }
    }

    /// Returns the verdicts, those on the commands with most cycles first.
    pub(crate) fn finish(mut self, builder: &mut RowBuilder<'_>) -> Vec<Verdict> {
        self.commands.sort_by_key(|sums| (std::cmp::Reverse(sums.total), sums.process));
        let sums = self.commands.iter();
        sums.map(|sums| sums.verdict(builder, self.selection.symbols)).collect()
    }
}

impl CommandSums {
    /// Returns the owner of a function's code; `made` is one of its instructions.
    fn owner(&self, id: FunctionId, made: &Code, symbols: &Symbols) -> Owner {
        let module = symbols.function(id).module;
        // If other code of the file has source lines, code that has none was compiled by others.
        let of_file = |sums: &&CodeSums| symbols.locations[sums.location].module == module;
        let has_lines = |sums: &CodeSums| symbols.locations[sums.location].source.is_some();
        let others_have = || self.instructions.values().filter(of_file).any(has_lines);
        let path = &symbols.module(module).path;
        Owner::of(path, made.source.is_some(), others_have, symbols.bare_metal)
    }

    fn verdict(&self, builder: &mut RowBuilder<'_>, symbols: &Symbols) -> Verdict {
        let whole = self.total.max(1) as f64;
        let mut all = CycleStack::default();
        self.functions.values().for_each(|stack| all += *stack);
        let mut order: Vec<(&FunctionId, &CycleStack)> = self.functions.iter().collect();
        order.sort_by_key(|(id, stack)| (std::cmp::Reverse(stack.total()), id.0));
        let places = order.into_iter().take(MAX_PLACES).filter_map(|(id, stack)| {
            let component = worst(stack);
            let own = self.instructions.iter().filter(|((function, _), _)| function == id);
            let most = |((_, address), sums): &(&CodePlace, &CodeSums)| {
                (sums.stack[component], std::cmp::Reverse(*address))
            };
            let (_, sums) = own.max_by_key(most)?;
            let made = builder.code(sums.inst, sums.location);
            Some(Place {
                process: sums.process + 1,
                share: stack.total() as f64 / whole,
                cause: Cause { component, share: stack[component] as f64 / whole },
                owner: self.owner(*id, &made, symbols),
                advice: String::new(),
                in_loop: None,
                function: made.function,
                label: made.label,
                pc: made.pc,
                text: made.text,
                source: made.source,
                library_source: made.library_source,
            })
        });
        let places: Vec<Place> = places.filter(|place| place.share >= NOTICEABLE).collect();
        let mut causes: Vec<Cause> = Component::ALL
            .into_iter()
            .map(|component| Cause { component, share: all[component] as f64 / whole })
            .filter(|cause| cause.share >= NOTICEABLE)
            .collect();
        causes.sort_by(|a, b| b.share.total_cmp(&a.share));
        causes.truncate(MAX_CAUSES);
        Verdict {
            process: self.process + 1,
            command: self.name.clone(),
            places,
            causes,
            inclusive: Vec::new(),
            interpreted: Vec::new(),
            waiting: None,
            path: None,
        }
    }
}

/// Returns the component to say something about: the largest wait, or `Execution` if that wait has less than [`WORTH_A_WORD`] of the cycles.
fn worst(stack: &CycleStack) -> Component {
    let waits = Component::ALL.into_iter().filter(|c| *c != Component::Execution);
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
        Component::LoadTlb => "waiting for the data TLB",
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

impl Verdict {
    /// Returns what the cycles go to, as the end of a sentence.
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
        let (source, library) = (self.source.as_deref(), self.library_source.as_deref());
        let at = fit_place(&self.label, source, library, 70);
        format!(
            "{} %  {}: {}, mostly at `{}` ({at})",
            fixed(self.share),
            fit_name(&self.function, 60),
            self.cause.in_words(),
            fit(&self.text, 40),
        )
    }
}

/// What is known of how threads depend on each other.
pub(super) struct ByThreads<'a> {
    /// What threads wait for.
    pub waiting: Option<&'a WaitingReport>,
    /// The critical path over threads.
    pub path: Option<&'a ThreadPathReport>,
}

/// Adds to each place the advice against its cycles, by the place's loop if it has one, and to each command what its threads wait for and
/// what its critical path is.
pub(super) fn complete(
    verdicts: &mut [Verdict],
    commands: &[CommandRow],
    loops: Option<&LoopsReport>,
    by_threads: &ByThreads<'_>,
) {
    for verdict in verdicts {
        let command = commands.iter().find(|row| row.name == verdict.command);
        let members = command.map_or(&[][..], |row| &row.members);
        verdict.waiting = by_threads.waiting.and_then(|waiting| waiting.sentence(members));
        verdict.path = by_threads.path.and_then(|path| path.sentence(members));
        for place in &mut verdict.places {
            let own = loops.and_then(|loops| loops.loop_of(members, &place.function));
            place.advice = advice::for_place(place, own);
            place.in_loop = own.map(LoopRow::in_words);
        }
    }
}

/// Returns the verdicts that a form of the report shows, each with its command.
fn shown<'a>(
    verdicts: &'a [Verdict],
    common: &'a Common,
    options: &Options,
) -> impl Iterator<Item = (&'a Verdict, &'a CommandRow)> {
    let wanted = options.process.clone();
    let command =
        |verdict: &Verdict| common.commands.iter().find(|row| row.name == verdict.command);
    let mut all: Vec<(&Verdict, &CommandRow)> =
        verdicts.iter().filter_map(|verdict| Some((verdict, command(verdict)?))).collect();
    // The program that was asked about comes first, even if it mostly waits.
    let run = common.meta.name().unwrap_or_default().to_owned();
    all.sort_by_key(|(_, row)| row.name != run);
    let most = all.iter().map(|(_, row)| row.share).fold(0.0, f64::max);
    let named = move |(_, row): &(&Verdict, &CommandRow)| match &wanted {
        Some(name) => {
            let own = row.members.iter().map(|&index| &common.processes[index].name);
            row.name == *name || own.into_iter().any(|own| own == name)
        }
        None => row.name == run || row.share >= COMPARABLE * most,
    };
    let count = options.processes.max(1);
    all.into_iter().filter(named).take(count)
}

/// Returns how to learn what is below each function, if calls were not followed and can be.
fn offer_of_call_stacks(verdicts: &[Verdict], common: &Common) -> Option<&'static str> {
    let has_trace = common.meta.has_trace();
    let wanted = !verdicts.is_empty() && common.flame.callers.is_empty() && has_trace;
    wanted.then_some(
        "Calls were not followed: tipsim report DIR --rebuild --call-stacks says what is below each function.",
    )
}

impl Section for Vec<Verdict> {
    fn write(&self, common: &Common, options: &Options, out: &mut String) -> std::fmt::Result {
        for (verdict, command) in shown(self, common, options) {
            let line = format!(
                "{}: {:.1} M cycles: {}",
                fit(&command.title(), 40),
                command.cycles / 1e6,
                verdict.causes_in_words()
            );
            writeln!(out)?;
            for line in wrap(&line, 116) {
                writeln!(out, "{line}")?;
            }
            for words in verdict.waiting.iter().chain(&verdict.path) {
                for line in wrap(words, 114) {
                    writeln!(out, "  {line}")?;
                }
            }
            let interpreted = verdict.interpreted.iter().map(InterpretedFunction::in_words);
            let inclusive = verdict.inclusive.iter().map(InclusiveRow::in_words);
            for sentence in interpreted.chain(inclusive) {
                for (n, line) in wrap(&sentence, 112).iter().enumerate() {
                    writeln!(out, "{}{line}", if n == 0 { "  " } else { "         " })?;
                }
            }
            for place in &verdict.places {
                for (n, line) in wrap(&place.in_words(), 112).iter().enumerate() {
                    writeln!(out, "{}{line}", if n == 0 { "  " } else { "         " })?;
                }
                if let Some(words) = &place.in_loop {
                    for line in wrap(words, 108) {
                        writeln!(out, "         {line}")?;
                    }
                }
                for (n, line) in wrap(&place.advice, 106).iter().enumerate() {
                    writeln!(out, "         {}{line}", if n == 0 { "try: " } else { "     " })?;
                }
            }
        }
        if let Some(offer) = offer_of_call_stacks(self, common) {
            writeln!(out)?;
            for line in wrap(offer, 116) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    /// Returns the verdicts as lists; empty if there are none.
    fn page(&self, common: &Common) -> Markup {
        if self.is_empty() {
            return html! {};
        }
        html! {
            section id="verdict" aria-labelledby="verdict-title" {
                h2 id="verdict-title" { "Verdict" }
                @for (verdict, command) in shown(self, common, &Options::default()) {
                    (verdict.list(command))
                }
                @if let Some(offer) = offer_of_call_stacks(self, common) {
                    p class="muted" { (offer) }
                }
            }
        }
    }
}

impl Verdict {
    /// Returns the verdict as lists of functions and places.
    fn list(&self, command: &CommandRow) -> Markup {
        html! {
            p {
                b { (command.title()) }
                ": " (format_args!("{:.1}", command.cycles / 1e6)) " M cycles: " (words(&self.causes_in_words()))
                @for sentence in self.waiting.iter().chain(&self.path) {
                    "; " (words(sentence))
                }
                "."
            }
            @if !self.inclusive.is_empty() || !self.interpreted.is_empty() {
                ul {
                    @for row in &self.interpreted {
                        li title=(row.name) { (words(&row.in_words())) }
                    }
                    @for row in &self.inclusive {
                        li { (words(&row.in_words())) }
                    }
                }
            }
            ol {
                @for place in &self.places {
                    (place.item())
                }
            }
        }
    }
}

impl Place {
    /// Returns the place as an item of a list, which leads to its code.
    fn item(&self) -> Markup {
        let (source, library) = (self.source.as_deref(), self.library_source.as_deref());
        html! {
            li {
                a href="#code" data-process=(self.process) data-function=(self.function) data-pc=(self.pc)
                    title=(self.function) {
                    (fit_name(&self.function, 60))
                }
                ", " (words(&format!("{} %", fixed(self.share)))) ": " (words(&self.cause.in_words())) ", mostly at "
                code { (self.text) }
                " (" span title=(self.label) { (fit_place(&self.label, source, library, 90)) } ")"
                @if let Some(in_loop) = &self.in_loop {
                    "; " (words(in_loop))
                }
                ". Try: " (self.advice) "."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
