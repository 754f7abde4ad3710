//! The guest's processes and what they mapped.

use serde::{Deserialize, Serialize};

/// Dense number of a profile entity: one program run by one guest process. 0 is [`ProcessId::BOOT`].
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct ProcessId(pub u32);

impl ProcessId {
    /// Firmware, and the kernel before it reports its first context switch.
    pub const BOOT: Self = Self(0);
}

/// A guest process running one program: each `execve` starts a new entry with the next `generation`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The process's number.
    pub id: ProcessId,
    /// The kernel's process id (thread group id); `None` for "boot".
    pub pid: Option<u32>,
    /// 0 for the program that the process was born with, one more for each `execve`.
    pub generation: u32,
    /// The kernel's command name (up to 15 bytes), or "boot".
    pub name: String,
    /// Cycle since which the process is known.
    pub first_cycle: u64,
    /// Cycle in which the process exited or executed another program.
    pub end_cycle: Option<u64>,
    /// Executable mappings in order of time, those of the parent included.
    pub mappings: Vec<Mapping>,
    /// Number of processes that the entity stands for; `None`: one. If very many processes run a command, the first have an
    /// entity each, and all others share one, which has no `pid` and no end.
    pub stands_for: Option<u32>,
}

/// What tells processes apart on all harts: the kernel's process id and the generation; the command, if it stands for many.
pub type ProcessKey = (Option<u32>, u32, Option<String>);

/// Dense number of a thread of a profile entity.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct ThreadId(pub u32);

impl ThreadId {
    /// The number where threads are not told apart.
    pub const NONE: Self = Self(u32::MAX);
}

/// Names of a thread that are kept; each name beyond takes the place of the last one.
const MAX_NAMES: usize = 64;

/// A thread of a [`Process`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// The thread's number.
    pub id: ThreadId,
    /// The process that the thread is part of.
    pub process: ProcessId,
    /// The kernel's number of the thread; that of a process's first thread is the process id.
    pub tid: u32,
    /// The kernel's names of the thread over time (up to 15 bytes), each with the cycle since which the thread is known to
    /// have it; the last one stands for all in reports.
    pub names: Vec<(u64, String)>,
    /// Cycle since which the thread is known.
    pub first_cycle: u64,
    /// Cycle in which the thread exited or executed another program.
    pub end_cycle: Option<u64>,
    /// Profiled cycles in which the thread ran.
    pub cycles: u64,
}

impl Thread {
    /// A thread that is known since `cycle`.
    pub fn new(id: ThreadId, process: ProcessId, tid: u32, cycle: u64, name: String) -> Self {
        Self {
            id,
            process,
            tid,
            names: vec![(cycle, name)],
            first_cycle: cycle,
            end_cycle: None,
            cycles: 0,
        }
    }

    /// Returns the thread's last name.
    pub fn name(&self) -> &str {
        self.names.last().map_or("", |(_, name)| name)
    }

    /// Gives the thread a name.
    pub(crate) fn rename(&mut self, cycle: u64, name: String) {
        if self.name() == name {
            return;
        }
        if self.names.len() == MAX_NAMES {
            self.names.pop();
        }
        self.names.push((cycle, name));
    }
}

/// An executable mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// First virtual address.
    pub start: u64,
    /// Length, in bytes.
    pub len: u64,
    /// Offset of `start` in the file, in bytes.
    pub file_offset: u64,
    /// The file's build id; empty if it has none.
    pub build_id: Vec<u8>,
    /// Path in the guest, or a name in brackets (`[vdso]`).
    pub path: String,
    /// Cycle since which the mapping holds.
    pub since: u64,
}

impl Mapping {
    /// True if the mapping holds `address`.
    pub fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.len
    }
}

impl Process {
    /// What the process is known by on all harts.
    pub fn key(&self) -> ProcessKey {
        let command = self.stands_for.map(|_| self.name.clone());
        (self.pid, self.generation, command)
    }

    /// The mapping of `address` at `cycle`: the latest that holds by then, or the first one later
    /// (a report may reach the stream a little after the code first runs).
    pub fn mapping_at(&self, address: u64, cycle: u64) -> Option<&Mapping> {
        let mut holding = self.mappings.iter().filter(|mapping| mapping.contains(address));
        let mut best = holding.next()?;
        for mapping in holding {
            if mapping.since > cycle {
                break;
            }
            best = mapping;
        }
        Some(best)
    }
}
