//! Processes that are called differently in the two runs.

use super::Run;

/// Characters of a process's name that the kernel keeps.
const NAME_MAX: usize = 15;

/// The name as the kernel has it, if a process of the run is called so.
pub(super) fn known(name: &str, run: &Run) -> Result<String, String> {
    let names = || (0..run.processes.len()).map(|process| run.command(process));
    let kept = match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => &name[..end],
        None => name,
    };
    if names().any(|known| known == kept) {
        return Ok(kept.to_owned());
    }
    let mut known: Vec<&str> = names().filter(|name| *name != "all").collect();
    known.sort_unstable();
    known.dedup();
    Err(format!("expected one of the processes {}, found \"{name}\"", known.join(", ")))
}

/// What a process is called after the change.
pub(crate) fn now(name: &str, map: &[(String, String)]) -> String {
    let renamed = map.iter().find(|(old, _)| old == name);
    renamed.map_or(name, |(_, new)| new).to_owned()
}

/// The name of a module whose file has a process's name.
pub(crate) fn file_now(path: &str, map: &[(String, String)]) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let is = |old: &str| match old.len() < NAME_MAX {
        true => file == old,
        false => file.starts_with(old),
    };
    match map.iter().find(|(old, _)| is(old)) {
        Some((_, new)) if folder.is_empty() => new.clone(),
        Some((_, new)) => format!("{folder}/{new}"),
        None => path.to_owned(),
    }
}
