//! Numbers of the section "Speed-up stack".

use crate::rule::{ReportPath, Rule, rule};

const SPEEDUP: &str = "profile/src/speedup.rs, from the Oracle's cycle stacks; profile/src/waits/idle.rs, from the guest's side-band \
                       records SWITCH, WAKE and FORK";
const STACKS: &str = "Eyerman, Du Bois and Eeckhout, Speedup stacks (ISPASS 2012)";

/// Returns the rule of a number of the stack; `below` is the field, and in the list of components entry and field.
pub(crate) fn rule_of(path: &ReportPath<'_>, below: &[&str]) -> Rule {
    let of = |meaning: &str, formula: &str| rule(meaning, formula, SPEEDUP, STACKS);
    match below {
        ["harts"] => of("Number of harts of the run.", "counted"),
        ["cycles"] => of(
            "Cycles of all harts in the region of interest. A hart's sleep from before the region is in totals.cycles, but not here.",
            "sum of components.cycles: cycles of the region * speedup.harts",
        ),
        ["components", _, "cycles"] => of(
            "Cycles of all harts that are spent on this. Those of user mode and of the kernel are the Oracle's by privilege and by what \
             the oldest instruction waits for; those in which a hart sleeps or runs its idle thread are split by what the program's threads do \
             meanwhile.",
            "sum over all harts",
        ),
        ["components", _, "share"] => {
            let part = path.own(3, "cycles");
            let whole = path.at(&["speedup", "cycles"]);
            of("Share of the cycles of all harts.", "cycles / speedup.cycles")
                .from("cycles", part)
                .from("speedup.cycles", whole)
                .check(part.zip(whole).map(|(part, whole)| part / whole.max(1.0)))
        }
        ["memory", field] => {
            let meaning = match *field {
                "bytes" => {
                    "Bytes read from memory and written to it in the region, for whatever request."
                }
                "loads" => "Lines that memory read for loads of all harts.",
                _ => {
                    "Cycles that lines read for loads waited for a refresh, their bank or the bus, before memory's own latency. Other \
                      requests are served there, of the same hart or of others."
                }
            };
            rule(meaning, "counted", "timing/src/mem/dram.rs, timing/src/mem/counts.rs", STACKS)
        }
        _ => path.no_rule(),
    }
}
