//! Entries of commands that very many processes run: each has a bounded number of its own, and one for all further processes.

use std::collections::HashMap;

use crate::{Mapping, ProcessId, ThreadId};

/// Processes of one command that have an entry each. What is counted for an entry is kept until the end of a run: a shell
/// script that starts thousands of programs must not take gigabytes.
const OWN_ENTRIES: u32 = if cfg!(test) { 4 } else { 32 };
/// Entries that there are at most before every command has one for all its further processes.
const MAX_ENTRIES: usize = if cfg!(test) { 40 } else { 1024 };
/// Mappings that an entry for many processes keeps.
const MAX_MAPPINGS: usize = 1 << 12;

/// Which commands have how many entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Commands {
    by_name: HashMap<String, Command>,
    /// The threads of entries that stand for many processes, by name.
    threads: HashMap<(ProcessId, String), ThreadId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Command {
    own: u32,
    /// The entry of all further processes.
    others: Option<ProcessId>,
}

/// The entry that a new process of a command gets.
pub(super) enum EntryOf {
    /// An entry of its own.
    Own,
    /// The entry for further processes of the command, which is not there yet.
    NewOthers,
    /// The entry for further processes of the command.
    Others(ProcessId),
}

impl Commands {
    /// Chooses the entry of a new process, of which there are `entries` in all.
    pub(super) fn entry_of(&mut self, name: &str, entries: usize) -> EntryOf {
        let command = self.by_name.entry(name.to_owned()).or_default();
        if command.own < OWN_ENTRIES && entries < MAX_ENTRIES {
            command.own += 1;
            return EntryOf::Own;
        }
        command.others.map_or(EntryOf::NewOthers, EntryOf::Others)
    }

    /// Makes `id` the entry of a command's further processes.
    pub(super) fn set_others(&mut self, name: &str, id: ProcessId) {
        self.by_name.entry(name.to_owned()).or_default().others = Some(id);
    }

    /// Returns the thread of this name of an entry for many processes; `new` makes it if it is not there yet.
    pub(super) fn thread(
        &mut self,
        process: ProcessId,
        name: &str,
        new: impl FnOnce() -> ThreadId,
    ) -> ThreadId {
        *self.threads.entry((process, name.to_owned())).or_insert_with(new)
    }
}

/// Adds a mapping of one of many processes to the known mappings, unless the last one at its address is the same.
pub(super) fn add_mapping(known: &mut Vec<Mapping>, mapping: Mapping) {
    let last = known.iter().rev().find(|other| other.contains(mapping.start));
    let is_known = last.is_some_and(|last| {
        let since = last.since;
        Mapping { since, ..mapping.clone() } == *last
    });
    if !is_known && known.len() < MAX_MAPPINGS {
        known.push(mapping);
    }
}
