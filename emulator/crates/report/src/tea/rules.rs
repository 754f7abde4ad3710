//! Events of instructions (TEA).

use commit_trace::TeaEvents;

use crate::rule::{EVENTS, ORACLE, ReportPath, Rule, TEA, TIP, rule};

pub(crate) fn rule_of(path: &ReportPath<'_>) -> Rule {
    let signature = *path.names.last().unwrap_or(&"");
    match path.keys[1..] {
        ["processes", _, "events", event] => {
            let stack = &path.report["tea"]["processes"][path.keys[2].parse::<usize>().unwrap_or(0)]["stack"];
            let with = stack.as_object().into_iter().flatten().filter(|(signature, _)| signature.split('|').any(|e| e == event));
            let with: Vec<(String, f64)> = with.filter_map(|(s, share)| Some((s.clone(), share.as_f64()?))).collect();
            let mut made = rule(format!("Share of the process's cycles, by the Oracle, in instructions that met {event}, alone or with other events{}.", about(event)), "sum over the signatures that hold the event", EVENTS, TEA);
            for (signature, share) in &with {
                made = made.from(format!("stack.{signature}"), Some(*share));
            }
            made.check(Some(with.iter().map(|(_, share)| share).sum()))
        }
        [_, _, "stack", _] => rule(format!("Share of the process's cycles that the Oracle charges to instructions whose execution met exactly: {signature}."), "cycles charged with that signature / cycles of the process", EVENTS, TEA)
            .from(path.process_of(3).0, path.process_of(3).1),
        [_, _, "stacks", column, _] => rule(format!("The same by {column}: share of its samples' weight with this signature ({signature})."), "weight of samples whose instruction has that signature / weight of all its samples in the process", EVENTS, TEA)
            .from("by the Oracle", path.at(&["tea", path.keys[1], path.keys[2], "stack", signature])),
        ["processes", _, "errors", column, level] => rule(format!("Share of the cycles that {column} gives to the wrong {level} or signature."), "as the profile error, with pairs of symbol and signature for symbols", EVENTS, TEA),
        [_, _, "cycles"] => rule("Cycles that the Oracle charges to this instruction.", "sum of its units / 840", ORACLE, TIP),
        _ => path.index(),
    }
}

/// What an event says of an execution.
fn about(event: &str) -> String {
    let row = TeaEvents::TABLE.iter().find(|(name, _)| *name == event);
    row.map_or(String::new(), |(_, about)| format!(": each {about}"))
}
