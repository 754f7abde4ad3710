//! What to try: the functions and causes that a program loses most cycles to, by the Oracle's cycle stacks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use commit_trace::InstId;
use profile::{Component, CycleStack, Evaluation, ProcessId};
use serde::Serialize;
use symbols::{Place, Symbolizer, Symbols, place};
use timing::{Cause, Without};

use super::among_harts::Between;
use super::code::Code;
use crate::failure::{BadInput, nearest};
use crate::symbol_sources::names::disassemble;

/// Share of the program's cycles lost to a cause from which on it is worth a run to know what the cause costs.
pub(super) const MIN_LOST_SHARE: f64 = 0.02;
/// Share of the cycles lost to a cause from which on an instruction is one of those that lose them.
const MIN_SHARE_OF_LOST: f64 = 0.01;

/// Instructions of a function that lose cycles in a way.
#[derive(Debug, Serialize)]
pub(super) struct Candidate {
    /// The way's name.
    pub cause: &'static str,
    /// What the instructions are, in the plural.
    pub kind: &'static str,
    /// Name of the function, or where the user asked for.
    pub function: String,
    /// Share of the program's cycles that the instructions lose in this way.
    pub lost: f64,
    /// The instructions, those that lose most first.
    pub instructions: Vec<Instruction>,
    /// Selects in the place of the instructions, if they are branches: what is tried beside the candidate.
    #[serde(skip)]
    pub selects: Option<Selects>,
}

/// Selects in the place of branches: at least one, or the reason why there is none.
pub(super) type Selects = Result<Vec<Instruction>, &'static str>;

/// An instruction that is tried without a cause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Instruction {
    /// Cause, address and encoding, as the core's parameter `what_if.without` has them.
    pub without: String,
    /// The instruction's function, with the distance from the function's start.
    pub label: String,
    /// The instruction in assembly.
    pub text: String,
    /// `file:line`, if known.
    pub source: Option<String>,
}

/// Returns the cycles that an instruction loses in a way, of those that the Oracle charges to it.
fn lost(cause: Cause, stack: &CycleStack, is_store: bool) -> u64 {
    use Component as C;
    let components: &[C] = match (cause, is_store) {
        (Cause::Mispredict | Cause::Select, _) => &[C::Mispredict],
        (Cause::Miss, false) => &[C::LoadL2, C::LoadLlc, C::LoadDram, C::LoadPeer],
        (Cause::Miss, true) => &[C::FrontEndStores],
        (Cause::Flush, _) => &[C::Serialize, C::Flush],
        (Cause::Division, _) => &[C::Divider],
        (Cause::Chain, _) => &[C::Alu, C::LoadL1],
    };
    components.iter().map(|&component| stack[component]).sum()
}

const STORES: &str = "stores";
const BRANCHES: &str = "branches";

/// Returns what instructions of a class that lose cycles in a way are called.
fn kind(cause: Cause, class: isa::InstClass) -> &'static str {
    use isa::InstClass as C;
    match (cause, class) {
        (Cause::Mispredict | Cause::Select, C::Branch) => BRANCHES,
        (Cause::Mispredict | Cause::Select, _) => "jumps",
        (Cause::Miss, C::Store | C::FpStore) => STORES,
        (Cause::Miss, _) => "loads",
        (Cause::Flush, C::Csr) => "CSR accesses",
        (Cause::Flush, C::Fence) => "fences",
        (Cause::Flush, _) => "atomics",
        (Cause::Division, _) => "divisions",
        (Cause::Chain, _) => "chains",
    }
}

/// What the user asks for: `CAUSE@WHERE`.
pub(super) struct Wanted<'a> {
    cause: Cause,
    place: &'a str,
}

impl<'a> Wanted<'a> {
    /// Parses an argument of `--without`.
    pub(super) fn parse(text: &'a str) -> Result<Self, BadInput> {
        let (name, place) = text.split_once('@').unwrap_or((text, ""));
        let cause = Cause::ALL.iter().find(|cause| cause.name() == name);
        match (cause, place) {
            (Some(&cause), place) if !place.is_empty() => Ok(Self { cause, place }),
            _ => {
                let names: Vec<_> = Cause::ALL.iter().map(|cause| cause.name()).collect();
                let between = Between::ALL.map(Between::name).join("@DATA, ");
                Err(BadInput(format!(
                    "--without: expected CAUSE@FUNCTION, CAUSE@FUNCTION+0x12 or CAUSE@FILE:LINE with a cause of {}, or {between}@DATA, found {text:?}",
                    names.join(", ")
                )))
            }
        }
    }

    fn is_at(&self, row: &CommittedInst<'_>) -> bool {
        let line = row.source.as_deref().is_some_and(|source| {
            let before = source.strip_suffix(self.place);
            before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        });
        row.function == self.place || row.label == self.place || line
    }
}

/// An instruction of the program that committed, in one of its processes.
struct CommittedInst<'a> {
    pc: u64,
    raw: u32,
    function: &'a str,
    label: String,
    source: Option<String>,
    stack: CycleStack,
}

/// Returns the program with most cycles; the kernel's own, or a bare-metal program, only if there is no other. Nothing if none has any.
pub(super) fn main_program(evaluation: &Evaluation) -> Option<String> {
    let mut cycles = BTreeMap::<(bool, &str), u64>::new();
    for (process, _, stack) in evaluation.stacks.iter() {
        let process = &evaluation.processes[process.0 as usize];
        let is_program = process.pid.is_some_and(|pid| pid != 0);
        *cycles.entry((is_program, &process.name)).or_default() += stack.total();
    }
    let found = cycles.into_iter().filter(|(_, units)| *units > 0);
    let most = found.max_by_key(|((is_program, _), units)| (*is_program, *units));
    let ((_, most), _) = most?;
    Some(most.to_owned())
}

/// What a program's instructions lose by function and cause; all of its cycles, and those lost at each instruction.
struct Losses {
    total: u64,
    found: BTreeMap<(String, Cause, &'static str), BTreeMap<Instruction, u64>>,
    /// Instructions that the program executed.
    code: Code,
    /// Functions of these instructions.
    functions: BTreeSet<String>,
    /// Places that the user asks for and that the program executed something at.
    executed: BTreeSet<String>,
}

fn losses(
    evaluation: &Evaluation,
    program: &str,
    symbolizer: &Symbolizer,
    wanted: &[Wanted<'_>],
) -> Losses {
    let is_of = |process: ProcessId| evaluation.processes[process.0 as usize].name == program;
    let stacks: Vec<_> = evaluation.stacks.iter().filter(|(process, ..)| is_of(*process)).collect();
    let fact = |inst: InstId| &evaluation.static_info[inst.0 as usize];
    let executed = stacks.iter().map(|(_, inst, _)| (fact(*inst).pc, fact(*inst).raw));
    let mut losses = Losses {
        total: 0,
        found: BTreeMap::new(),
        code: Code::new(executed),
        functions: BTreeSet::new(),
        executed: BTreeSet::new(),
    };
    let places: Vec<Place> = stacks
        .iter()
        .map(|(process, inst, _)| place::place(evaluation, *process, fact(*inst)))
        .collect();
    let symbols = symbolizer.resolve(&places);
    for (at, (_, inst, stack)) in stacks.iter().enumerate() {
        let fact = fact(*inst);
        losses.total += stack.total();
        losses.add(&row(&symbols, at, fact.pc, fact.raw, *stack), wanted);
    }
    losses
}

fn row(symbols: &Symbols, at: usize, pc: u64, raw: u32, stack: CycleStack) -> CommittedInst<'_> {
    let location = &symbols.locations[at];
    CommittedInst {
        pc,
        raw,
        function: &symbols.function(location.function).name,
        label: symbols.label(at),
        source: location.source.as_ref().map(|source| format!("{}:{}", source.file, source.line)),
        stack,
    }
}

impl Losses {
    fn add(&mut self, row: &CommittedInst<'_>, wanted: &[Wanted<'_>]) {
        let decoded = isa::decode(row.raw);
        if !self.functions.contains(row.function) {
            self.functions.insert(row.function.to_owned());
        }
        for wanted in wanted.iter().filter(|wanted| wanted.is_at(row)) {
            self.executed.insert(wanted.place.to_owned());
        }
        for &cause in Cause::ALL.iter().filter(|cause| cause.fits(&decoded)) {
            let asked = wanted.iter().find(|wanted| wanted.cause == cause && wanted.is_at(row));
            if !wanted.is_empty() && asked.is_none() {
                continue;
            }
            let select = match cause {
                Cause::Select => self.code.select(row.pc).ok(),
                _ => None,
            };
            let is_none = match cause {
                Cause::Chain => !self.code.is_chain(row.pc),
                // A select is tried beside foresight, or if it is asked for.
                Cause::Select => select.is_none() || asked.is_none(),
                _ => false,
            };
            if is_none {
                continue;
            }
            // Asked for by a line, it is one candidate whatever it is inlined into.
            let name = asked.map_or(row.function, |wanted| wanted.place);
            let instruction = Instruction {
                without: Without { cause, pc: row.pc, raw: Some(row.raw), select }.to_string(),
                label: row.label.clone(),
                text: disassemble(row.raw, row.pc).replace('\t', " "),
                source: row.source.clone(),
            };
            // Loads and stores of a function are tried apart.
            let kind = kind(cause, decoded.class);
            let lost = lost(cause, &row.stack, kind == STORES);
            let key = (name.to_owned(), cause, kind);
            // Several processes of the program may have it at the same place.
            let of = self.found.entry(key).or_default();
            *of.entry(instruction).or_default() += lost;
        }
    }
}

impl Losses {
    /// Something of the cause was executed at a place that the user asks for.
    fn check(&self, program: &str, wanted: &Wanted<'_>) -> Result<(), BadInput> {
        let Wanted { cause, place } = wanted;
        let found = self.found.keys().any(|(of, by, _)| of == place && by == cause);
        if found {
            return Ok(());
        }
        let what = if !self.executed.contains(*place) {
            // `file.c:31` and `function+0x12` name what is at an instruction.
            let is_function =
                !place.contains("+0x") && !place.contains(':') || place.contains("::");
            let what = if is_function { "function" } else { "place" };
            let nearest = nearest(place, self.functions.iter().map(String::as_str), 0.7);
            let nearest = nearest.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
            format!("{program} executed no {what} `{place}`{nearest}")
        } else if *cause == Cause::Chain {
            format!("{program} executed nothing there that waits for what it computed itself")
        } else if *cause == Cause::Select {
            format!("{program} executed no branches there that a select could take the place of")
        } else {
            format!("{program} executed no {} there", cause.takes())
        };
        let name = cause.name();
        Err(BadInput(format!("--without {name}@{place}: {what}")))
    }
}

/// Selects in the place of those of these branches that they are possible for; of none, the first one's reason.
fn selects(code: &Code, branches: &[Instruction]) -> Selects {
    let (mut found, mut reason) = (Vec::new(), None);
    for branch in branches {
        // The report has `without` in the form that is read here.
        let Ok(without) = branch.without.parse::<Without>() else {
            continue;
        };
        match code.select(without.pc) {
            Ok(select) => found.push(Instruction {
                without: Without { cause: Cause::Select, select: Some(select), ..without }
                    .to_string(),
                ..branch.clone()
            }),
            Err(why) => reason = reason.or(Some(why)),
        }
    }
    match reason {
        Some(reason) if found.is_empty() => Err(reason),
        _ => Ok(found),
    }
}

/// Returns what to try of a program, the most expensive first; or what is `wanted`, if that is anything.
pub(super) fn candidates(
    evaluation: &Evaluation,
    program: &str,
    symbolizer: &Symbolizer,
    wanted: &[Wanted<'_>],
) -> Result<Vec<Candidate>, BadInput> {
    let losses = losses(evaluation, program, symbolizer, wanted);
    if losses.total == 0 {
        return Err(BadInput(format!("no cycles of a process {program:?} were profiled")));
    }
    for wanted in wanted {
        losses.check(program, wanted)?;
    }
    let code = losses.code;
    let mut candidates: Vec<Candidate> = losses
        .found
        .into_iter()
        .map(|((function, cause, kind), instructions)| {
            let lost: u64 = instructions.values().sum();
            let mut instructions: Vec<_> = instructions.into_iter().collect();
            // Cycles behind a full store queue are charged to whoever waits: all stores fill it.
            if wanted.is_empty() && kind != STORES {
                instructions.retain(|(_, own)| *own as f64 >= MIN_SHARE_OF_LOST * lost as f64);
            }
            instructions.sort_by_key(|(_, own)| Reverse(*own));
            let instructions: Vec<_> =
                instructions.into_iter().map(|(instruction, _)| instruction).collect();
            let is_branch = cause == Cause::Mispredict && kind == BRANCHES;
            Candidate {
                cause: cause.name(),
                kind,
                function,
                lost: lost as f64 / losses.total as f64,
                selects: is_branch.then(|| selects(&code, &instructions)),
                instructions,
            }
        })
        .filter(|candidate| !wanted.is_empty() || candidate.lost >= MIN_LOST_SHARE)
        .collect();
    candidates.sort_by(|a, b| b.lost.total_cmp(&a.lost));
    Ok(candidates)
}
