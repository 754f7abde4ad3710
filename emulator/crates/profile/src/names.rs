//! What processes are called in reports.

use crate::{Evaluation, ProcessId};

/// The command name; with the process id where several have it, and with the number of its program
/// where one process id ran several of that name; with how many it stands for, if these are several. The name `all` is kept for the sum of all.
pub fn process_names(evaluation: &Evaluation, processes: &[ProcessId]) -> Vec<String> {
    let of = |id: &ProcessId| evaluation.processes.get(id.0 as usize);
    let plain = |id: &ProcessId| match of(id).and_then(|process| process.stands_for) {
        Some(others) => format!("{} ({others} others)", command_name(evaluation, *id)),
        None => command_name(evaluation, *id),
    };
    let pid = |id: &ProcessId| of(id).and_then(|process| process.pid);
    processes
        .iter()
        .map(|id| {
            let (name, number) = (plain(id), pid(id));
            let twins = || processes.iter().filter(|other| *other != id && plain(other) == name);
            if twins().next().is_none() {
                return name;
            }
            let with_id = format!("{name}-{}", number.unwrap_or(0));
            if twins().any(|other| pid(other) == number) {
                let generation = of(id).map_or(id.0, |process| process.generation);
                return format!("{with_id}.{generation}");
            }
            with_id
        })
        .collect()
}

/// The command of a process, which several may have; never empty, and never "all", which is the name of their sum.
pub fn command_name(evaluation: &Evaluation, process: ProcessId) -> String {
    match evaluation.processes.get(process.0 as usize) {
        Some(process) if !process.name.is_empty() && process.name != "all" => process.name.clone(),
        Some(process) => format!("{}?", process.name),
        None => "?".to_owned(),
    }
}
