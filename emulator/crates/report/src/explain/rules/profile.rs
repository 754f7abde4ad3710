//! Processes, threads, functions and instructions: cycles, shares and cycle stacks.

use super::error::error;
use crate::rule::{ORACLE, ReportPath, Rule, SAMPLERS, TEA, TIP, rule};

pub(super) fn process(path: &ReportPath<'_>) -> Rule {
    let name = format!("processes.{}", path.names[1]);
    let cycles = path.own(2, "cycles");
    match path.keys[2..] {
        ["count"] => rule("Processes that the row stands for.", "counted", "profile/src/guest_context.rs", "none"),
        ["pid"] => rule("The guest kernel's process id.", "from the driver's side-band records", "profile/src/guest_context.rs", "none"),
        ["cycles"] => rule("Cycles of the process by the Oracle: each cycle is charged once, to what the commit stage does or waits for.", "sum over its instructions of units / 840 (840 units are a cycle, so that n instructions that commit together share it evenly)", ORACLE, TIP),
        ["share"] => rule("Share of all processes' profiled cycles.", "cycles / processes.all.cycles", "report/src/build.rs", TIP)
            .from(format!("{name}.cycles"), cycles)
            .from("processes.all.cycles", path.at(&["processes", "0", "cycles"]))
            .check(cycles.zip(path.at(&["processes", "0", "cycles"])).map(|(part, whole)| part / whole)),
        ["stack", _] => stack(path, &name, cycles),
        ["samples", _] => rule("Samples of this sampler in the process.", "samples × (its weight in the process / its whole weight): samples are not counted per process, their cycles say how many it got", SAMPLERS, TIP)
            .from(format!("columns.{}.samples", path.names[3]), path.at(&["columns", path.keys[3], "samples"])),
        ["errors", _, level, kind] => error(path, &name, cycles, level, kind),
        _ => path.index(),
    }
}

pub(super) fn command(path: &ReportPath<'_>) -> Rule {
    let source = "report/src/commands.rs";
    match path.keys[2..] {
        ["count"] => rule("Processes of this command.", "counted", source, "none"),
        ["cycles"] => rule(
            "Cycles of all processes of this command by the Oracle.",
            "sum of processes.*.cycles over `members`",
            source,
            TIP,
        ),
        ["share"] => rule(
            "Share of all processes' profiled cycles.",
            "sum of processes.*.share over `members`",
            source,
            TIP,
        ),
        ["stack", _] => rule(
            "Share of the command's cycles in this category.",
            "sum of processes.*.stack * processes.*.cycles over `members` / cycles of the command",
            source,
            TIP,
        ),
        _ => path.index(),
    }
}

pub(super) fn row(path: &ReportPath<'_>) -> Rule {
    let what = if path.keys[0] == "functions" { "function" } else { "instruction" };
    let own = format!("{}.{}", path.names[0], path.names[1]);
    let (process, whole) = path.process_of(2);
    match path.keys[2..] {
        ["cycles"] => rule(format!("Cycles that the Oracle charges to this {what} in its process."), "sum of its units / 840", ORACLE, TIP),
        ["share"] => rule(format!("Share of its process's cycles that the Oracle charges to this {what}."), "cycles / cycles of the process", ORACLE, TIP)
            .from(format!("{own}.cycles"), path.own(2, "cycles"))
            .from(process, whole)
            .check(path.own(2, "cycles").zip(whole).map(|(part, whole)| part / whole)),
        ["total"] => rule(
            "Share of its process's cycles that the Oracle charges to this function and to all that it calls; what calls itself counts once.",
            "cycles at and below its nodes in the tree of callers / cycles of the process",
            "report/src/inclusive.rs, from calls and returns in the commit stream",
            TIP,
        ),
        ["stack", _] => stack(path, &process.replace(".cycles", ""), whole),
        ["store_queue"] => rule(format!("Share of its process's cycles in which this {what} waited at dispatch for room in the store queue while the ROB ran empty; the published stack has it under \"Front-end\"."), "cycles in that state / cycles of the process", "profile/src/stack.rs (FrontEndStores), from every record of the commit stream", TEA),
        ["shares", column] => rule(
            format!("Share of its own time in the process that {} gives to this {what}; the Oracle's beside it is {own}.share.", path.names[3]),
            "weight of the samples that name it / weight of all its samples in the process; a sample weighs the cycles since the one before, split evenly over the instructions that it names",
            SAMPLERS,
            TIP,
        )
        .from(format!("{own}.share (Oracle)"), path.own(2, "share"))
        .from(format!("columns.{}.samples", path.names[3]), path.at(&["columns", column, "samples"])),
        _ => path.index(),
    }
}

fn stack(path: &ReportPath<'_>, of: &str, cycles: Option<f64>) -> Rule {
    let category = *path.names.last().unwrap_or(&"");
    let meaning = format!(
        "Share of the process's cycles that the Oracle charges as \"{category}\": {}.",
        match category {
            "Execution" => "at least one instruction commits",
            "ALU stall" =>
                "the oldest instruction waits for operands or a unit (or serialises, and is no load, store or atomic)",
            "Load stall" => "the oldest instruction is a load or atomic that waits",
            "Store stall" => "the oldest instruction is a store that waits",
            "Front-end" => "the ROB is empty and nothing flushed it",
            "Mispredict" => "the ROB is empty after a mispredicted branch",
            _ => "the ROB is empty after any other flush, exception or interrupt",
        }
    );
    rule(
        meaning,
        "cycles in that state / cycles of the process",
        "profile/src/stack.rs and profile/src/oracle.rs, from every record of the commit stream",
        "TIP (MICRO 2021), figure 7",
    )
    .from(format!("{of}.cycles"), cycles)
    .from("cycles in that state", cycles.map(|cycles| cycles * path.value))
}
