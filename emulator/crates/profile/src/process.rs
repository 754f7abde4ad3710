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

/// One profile entity. A process that executes a new program becomes a new entity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub id: ProcessId,
    /// The kernel's process id (thread group id); `None` for "boot".
    pub pid: Option<u32>,
    /// 0 for the program that the process was born with, one more for each `execve`.
    pub generation: u32,
    /// The kernel's command name (up to 15 bytes), or "boot".
    pub name: String,
    /// Cycle since which it is known.
    pub first_cycle: u64,
    /// Cycle in which it exited or executed another program.
    pub end_cycle: Option<u64>,
    /// Executable mappings in order of time, those of the parent included.
    pub mappings: Vec<Mapping>,
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
    /// Cycle since which it holds.
    pub since: u64,
}

impl Mapping {
    /// True if the mapping holds `address`.
    pub fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.len
    }
}

impl Process {
    /// The mapping of `address` at `cycle`: the latest that holds by then, or the first one later
    /// (a report may reach the stream a little after the code first runs).
    pub fn mapping_at(&self, address: u64, cycle: u64) -> Option<&Mapping> {
        let mut holding = self
            .mappings
            .iter()
            .filter(|mapping| mapping.contains(address));
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
