//! From an instruction's address and the guest's mappings to a [`Place`].

use commit_trace::StaticInfo;
use profile::{Evaluation, Mapping, Process, ProcessId};

use crate::{BuildId, Code, Place, is_jit_file};

/// `StaticInfo::space` of untranslated addresses.
pub const BARE: u32 = 0;
/// `StaticInfo::space` of global addresses, the kernel's.
pub const KERNEL: u32 = 1;
const SUPERVISOR: u8 = 1;
/// Addresses from here up are the kernel's (Sv39, Sv48 and Sv57 alike).
const KERNEL_HALF: u64 = 1 << 63;

/// True if the place is the same for every process.
pub fn is_shared(fact: &StaticInfo) -> bool {
    fact.space == BARE || fact.space == KERNEL
}

/// The place of an instruction as `process` executed it.
pub fn place(evaluation: &Evaluation, process: ProcessId, fact: &StaticInfo) -> Place {
    let pc = fact.pc;
    if fact.space == BARE {
        return if fact.privilege == SUPERVISOR {
            Place::KernelPhysical(pc)
        } else {
            Place::Firmware(pc)
        };
    }
    // Before the kernel's own page tables are complete its mappings are not global.
    if fact.space == KERNEL || fact.privilege == SUPERVISOR && pc >= KERNEL_HALF {
        return Place::Kernel(pc);
    }
    let code = Some(Code {
        raw: fact.raw,
        len: fact.len,
    });
    let mapping = mapping(evaluation, process, fact);
    let place = match mapping {
        Some(mapping) => Place::File {
            code,
            path: mapping.path.as_str().into(),
            build_id: (!mapping.build_id.is_empty()).then(|| BuildId(mapping.build_id.clone())),
            offset: pc
                .wrapping_sub(mapping.start)
                .wrapping_add(mapping.file_offset),
        },
        None => Place::Unknown(pc),
    };
    let pid = { evaluation.processes.get(process.0 as usize) }.and_then(|process| process.pid);
    match pid {
        Some(pid) if mapping.is_none_or(|mapping| is_memory(&mapping.path)) => Place::Jit {
            pid,
            address: pc,
            code,
            otherwise: Box::new(place),
        },
        _ => place,
    }
}

/// True if a mapping of this name is no program file: code executed there was made at run time.
fn is_memory(path: &str) -> bool {
    let made = [
        "//anon",
        "[heap]",
        "[stack",
        "[anon",
        "anon_inode:",
        "/memfd:",
        "/dev/zero",
        "/dev/shm/",
        "/SYSV",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    made.iter().any(|front| path.starts_with(front)) || is_jit_file(name)
}

/// The file mapping that holds a user instruction as `process` executed it.
pub fn mapping<'a>(
    evaluation: &'a Evaluation,
    process: ProcessId,
    fact: &StaticInfo,
) -> Option<&'a Mapping> {
    let cycle = evaluation
        .first_use
        .get(fact.id.0 as usize)
        .copied()
        .unwrap_or(0);
    let of = |process: &ProcessId| -> Option<&'a Process> {
        evaluation.processes.get(process.0 as usize)
    };
    // A child of vfork runs in its parent's space: mappings that it does not have are looked up in the space's owner.
    let owner = evaluation.spaces.get(&fact.space);
    [Some(&process), owner]
        .into_iter()
        .flatten()
        .filter_map(of)
        .find_map(|process| process.mapping_at(fact.pc, cycle))
}
