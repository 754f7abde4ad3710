//! Numbers of the section "Loops".

use crate::rule::{ORACLE, ReportPath, Rule, TIP, rule};

const PATH: &str =
    "critical-path/src/walk.rs, from excerpts with all stages of the timing core (excerpts.zst)";
const ITERATIONS: &str = "critical-path/src/iterations.rs, from excerpts of the execution";
const FIELDS: &str =
    "Fields, Rubin, Bodík: Focusing Processor Policies via Critical-Path Prediction (ISCA 2001)";

/// Returns the rule of a number of the section.
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    let row = |field: &str| path.own(3, field);
    match below {
        ["excerpts" | "instructions" | "cycles"] => rule(
            "Excerpts of the execution that were kept: pieces of some thousand instructions in regular intervals.",
            "counted; when there are too many, every other one is forgotten, and the interval doubles",
            "critical-path/src/collect.rs",
            "none",
        ),
        ["widths", _] => rule(
            "What the core decodes or issues in a cycle.",
            "the core's parameters",
            "timing/presets",
            "none",
        ),
        ["loops", _, "process"] => path.index(),
        ["loops", _, "depth"] => rule(
            "Loops of the same function around this one.",
            "counted in the control flow of the executed instructions",
            "critical-path/src/loops.rs",
            "none",
        ),
        ["loops", _, "cycles"] => rule(
            "Cycles of the loop's instructions, inner loops included, called functions not.",
            "sum of the Oracle's cycles",
            ORACLE,
            TIP,
        ),
        ["loops", _, "share" | "own_share"] => {
            let (process, cycles) = path.process_of(3);
            let share = row("cycles").zip(cycles).map(|(part, whole)| part / whole);
            let whole = below[2] == "share";
            rule(
                match whole {
                    true => "Share of the process's cycles in the loop, inner loops included.",
                    false => "Share of the process's cycles in the loop without its inner loops.",
                },
                "the Oracle's cycles of the instructions / cycles of the process",
                ORACLE,
                TIP,
            )
            .from(process, cycles)
            .check(share.filter(|_| whole))
        }
        ["loops", _, "iterations"] => rule(
            "Iterations in the whole region: an estimate.",
            "the loop's cycles by the Oracle / cycles of its instructions in excerpts for each time that they have its first one",
            ITERATIONS,
            "none",
        )
        .from("cycles", row("cycles")),
        ["loops", _, "trips"] => rule(
            "Iterations each time that the loop is entered, on average.",
            "times that excerpts have its first instruction / mean of the times that they have its begin and its end",
            ITERATIONS,
            "none",
        ),
        ["loops", _, "measured"] => rule(
            "Whole iterations in excerpts, without those that an interrupt or a system call is in.",
            "counted",
            ITERATIONS,
            "none",
        ),
        ["loops", _, "cycles_per_iteration" | "range" | "instructions_per_iteration", ..] => {
            rule(
                "Cycles or instructions of a whole iteration, from its first instruction to the next time that this is executed; the range is the \
                 least, the median and the most.",
                "from the commit before its first instruction to that of its last one",
                ITERATIONS,
                "none",
            )
            .from("measured", row("measured"))
        }
        ["loops", _, "least", _] => rule(
            "Cycles that an iteration takes at least if nothing but decode or these ports bound it.",
            "its instructions that need them / how many a cycle takes",
            ITERATIONS,
            "none",
        )
        .from("instructions_per_iteration", row("instructions_per_iteration")),
        ["loops", _, "causes" | "chain", ..] => rule(
            "Cycles of an iteration on the critical path, by cause or by instruction. All causes together are the iteration's cycles.",
            "back from the last commit along what each stage waited for last; sum over the iterations / iterations",
            PATH,
            FIELDS,
        )
        .from("cycles_per_iteration", row("cycles_per_iteration")),
        _ => path.no_rule(),
    }
}
