//! The top-down analysis.

use crate::rule::{ReportPath, Rule, TMA, TOP_DOWN, rule};

pub(crate) fn rule_of(path: &ReportPath<'_>) -> Rule {
    match path.keys[1..] {
        ["width"] => rule("Commit slots per cycle.", "the core's commit width (meta.core.decode.width)", TOP_DOWN, TMA),
        ["nodes", _, "threshold"] => rule("Share of slots above which to look closer at this node, if its parent's share is above its own.", "the seed documents' where they name one, else that of Intel's TMA metrics for Skylake", "profile/src/topdown.rs (NODES)", TMA),
        ["nodes", ..] => rule("Depth in the tree: 1 for the roots.", "not a measurement", "profile/src/topdown.rs (NODES)", TMA),
        ["windows", _, "processes", ..] => rule("Share of the window's slots that this process spent on this node of the tree (top_down.nodes, in order).", "slots of the node / slots of all processes in the window", TOP_DOWN, TMA)
            .from("the window's slots", path.own(3, "cycles").zip(path.at(&["top_down", "width"])).map(|(cycles, width)| cycles * width)),
        ["windows", _, "stacks", ..] => {
            let category = path.names[5];
            rule(format!("Share of the window's profiled cycles that this process spent in the category \"{category}\" of the cycle stacks."), "cycles of the process in that state within the window / profiled cycles of the window", TOP_DOWN, "TIP (MICRO 2021), figure 7")
                .from("the window's cycles", path.own(3, "cycles"))
        }
        ["windows", ..] => rule("The window's first cycle, the first after it, and its profiled cycles.", "equal lengths, ended where spans end", TOP_DOWN, TMA),
        [_, _, "slots"] => {
            let (process, cycles) = path.process_of(3);
            let width = path.at(&["top_down", "width"]);
            let whole = path.keys[1] == "processes";
            let formula = if whole { "width × cycles of the process" } else { "slots of its instructions: those that they committed in and those lost by them" };
            let made = rule("Commit slots.", formula, TOP_DOWN, TMA).from("top_down.width", width);
            if whole { made.from(process, cycles).check(width.zip(cycles).map(|(width, cycles)| width * cycles)) } else { made }
        }
        [_, _, "shares", node_path] => {
            let slots = path.own(3, "slots");
            let node = path.report["top_down"]["nodes"].as_array().into_iter().flatten().find(|node| node["path"] == node_path);
            let name = node.and_then(|node| node["name"].as_str()).unwrap_or(node_path);
            let mut made = rule(format!("Share of the slots that went to {name}."), "slots of the node / slots", TOP_DOWN, TMA)
                .from("slots", slots)
                .from("slots of the node", slots.map(|slots| slots * path.value))
                .from("limit from which to look closer", node.and_then(|node| node["threshold"].as_f64()));
            let children: Vec<(String, f64)> = children(path, node_path);
            for (child, share) in &children {
                made = made.from(format!("shares.{child}"), Some(*share));
            }
            let sum = (!children.is_empty()).then(|| children.iter().map(|(_, share)| share).sum());
            made.check(sum)
        }
        _ => path.index(),
    }
}

/// Returns the shares of a node's children in the same row, by path in the tree.
fn children(path: &ReportPath<'_>, node_path: &str) -> Vec<(String, f64)> {
    let row = &path.report["top_down"][path.keys[1]][path.keys[2].parse::<usize>().unwrap_or(0)];
    let own = row["shares"].as_object().into_iter().flatten();
    own.filter(|(other, _)| other.rsplit_once('.').is_some_and(|(parent, _)| parent == node_path))
        .filter_map(|(other, share)| Some((other.clone(), share.as_f64()?)))
        .collect()
}
