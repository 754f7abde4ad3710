//! The bytes of side-band records: packed fields, little-endian (the TIP unit's register document
//! lists the types).

use std::ops::Range;

use crate::waits::{KernelEntry, SwitchOut};
use crate::{BusyHarts, Mapping};

pub(super) enum SideBand {
    Switch {
        pid: u32,
        tid: u32,
        comm: String,
        /// The thread that ran before, and why it does not go on, if the driver tells.
        left: Option<(u32, SwitchOut)>,
    },
    Exec {
        pid: u32,
        comm: String,
    },
    Mmap {
        pid: u32,
        mapping: Mapping,
    },
    Exit {
        pid: u32,
        tid: u32,
    },
    Fork {
        pid: u32,
        tid: u32,
        parent: u32,
        parent_tid: u32,
    },
    Kernel {
        text: Range<u64>,
    },
    Comm {
        pid: u32,
        tid: u32,
        comm: String,
    },
    Wake {
        tid: u32,
        /// The thread that wakes; `None`: an interrupt.
        waker: Option<u32>,
    },
}

/// Returns what a side-band record says, in a line.
pub fn describe_side_band(kind: u8, bytes: &[u8]) -> String {
    if let Some(BusyHarts(harts)) = BusyHarts::parse(kind, bytes) {
        return format!("side band: {harts} harts are busy");
    }
    let Some(record) = parse(kind, bytes) else {
        return format!("side band of type {kind}, {} bytes", bytes.len());
    };
    match record {
        SideBand::Switch { pid, tid, comm, left } => {
            let left =
                left.map_or_else(String::new, |(left, why)| format!(" after {left}, {why:?}"));
            format!("side band: {comm:?} runs, process {pid}, thread {tid}{left}")
        }
        SideBand::Exec { pid, comm } => format!("side band: process {pid} executes {comm:?}"),
        SideBand::Mmap { pid, mapping } => format!(
            "side band: process {pid} maps {:?} at {:#x}, {:#x} bytes from {:#x} of the file",
            mapping.path, mapping.start, mapping.len, mapping.file_offset
        ),
        SideBand::Exit { pid, tid } => format!("side band: thread {tid} of process {pid} ends"),
        SideBand::Fork { pid, tid, parent, parent_tid } => format!(
            "side band: thread {parent_tid} of process {parent} starts thread {tid} of process {pid}"
        ),
        SideBand::Kernel { text } => {
            format!("side band: the kernel's code is at {:#x} to {:#x}", text.start, text.end)
        }
        SideBand::Comm { pid, tid, comm } => {
            format!("side band: thread {tid} of process {pid} is called {comm:?} now")
        }
        SideBand::Wake { tid, waker } => match waker {
            Some(waker) => format!("side band: thread {waker} wakes thread {tid}"),
            None => format!("side band: an interrupt wakes thread {tid}"),
        },
    }
}

/// Parses a record; `None` for an unknown type or a record that is too short.
pub(super) fn parse(kind: u8, bytes: &[u8]) -> Option<SideBand> {
    let mut fields = Fields(bytes);
    Some(match kind {
        1 => SideBand::Switch {
            pid: fields.u32()?,
            tid: fields.u32()?,
            comm: fields.comm()?,
            left: match fields.0 {
                [] => None,
                _ => Some(fields.left()?),
            },
        },
        2 => {
            let (pid, _tid) = (fields.u32()?, fields.u32()?);
            SideBand::Exec { pid, comm: fields.comm()? }
        }
        3 => {
            let (pid, _tid) = (fields.u32()?, fields.u32()?);
            let (start, len, file_offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
            let build_id_len = fields.u32()? as usize;
            let build_id = fields.take(20)?.get(..build_id_len)?.to_vec();
            let path = text(fields.0);
            SideBand::Mmap {
                pid,
                mapping: Mapping { start, len, file_offset, build_id, path, since: 0 },
            }
        }
        4 => SideBand::Exit { pid: fields.u32()?, tid: fields.u32()? },
        5 => SideBand::Fork {
            pid: fields.u32()?,
            tid: fields.u32()?,
            parent: fields.u32()?,
            parent_tid: fields.u32()?,
        },
        6 => {
            let text = fields.u64()?..fields.u64()?;
            SideBand::Kernel { text }
        }
        7 => SideBand::Comm { pid: fields.u32()?, tid: fields.u32()?, comm: fields.comm()? },
        8 => SideBand::Wake {
            tid: fields.u32()?,
            waker: Some(fields.u32()?).filter(|waker| *waker != 0),
        },
        _ => return None,
    })
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    /// The thread that ran before a switch, and why it does not go on.
    fn left(&mut self) -> Option<(u32, SwitchOut)> {
        let tid = self.u32()?;
        let [why, entry] = *self.take(2)?.first_chunk()?;
        let number = self.take(2)?.try_into().ok().map(u16::from_le_bytes)?;
        let left = match (why, entry) {
            (1, _) => SwitchOut::Runnable,
            (2, 0) => SwitchOut::Waits(KernelEntry::Kernel),
            (2, entry) => {
                let (address, pc, argument) = (self.u64()?, self.u64()?, self.u32()?);
                SwitchOut::Waits(match entry {
                    1 => KernelEntry::Syscall { number, address, argument, pc },
                    2 => KernelEntry::Fault { address, pc },
                    3 => KernelEntry::Other,
                    _ => return None,
                })
            }
            (3, _) => SwitchOut::Ended,
            _ => return None,
        };
        Some((tid, left))
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// The kernel's `comm`: 16 bytes, padded with NUL.
    fn comm(&mut self) -> Option<String> {
        self.take(16).map(text)
    }
}

/// Text up to the first NUL; bytes that are not UTF-8 are replaced.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
