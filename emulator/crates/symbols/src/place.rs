//! From an instruction's address and the guest's mappings to a [`Place`].

use std::collections::HashMap;

use commit_trace::{InstId, StaticInfo};
use profile::{Evaluation, Mapping, Process, ProcessId};

use crate::{BuildId, Code, Mapped, Place, is_jit_file};

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
    let code = Some(Code { raw: fact.raw, len: fact.len });
    let mapping = mapping(evaluation, process, fact);
    let pid = evaluation.processes.get(process.0 as usize).and_then(|process| process.pid);
    let place = match mapping {
        Some(mapping) => Place::File {
            code,
            mapped: Mapped(pid.map(|pid| (pid, pc))),
            path: mapping.path.as_str().into(),
            build_id: (!mapping.build_id.is_empty()).then(|| BuildId(mapping.build_id.clone())),
            offset: pc.wrapping_sub(mapping.start).wrapping_add(mapping.file_offset),
        },
        None => Place::Unknown(pc),
    };
    match pid {
        Some(pid) if mapping.is_none_or(|mapping| is_memory(&mapping.path)) => {
            Place::Jit { pid, address: pc, code, otherwise: Box::new(place) }
        }
        _ => place,
    }
}

/// The places of many instructions, without duplicates: places of the kernel are the same for every process.
pub struct Places<'a> {
    evaluation: &'a Evaluation,
    known: HashMap<(Option<ProcessId>, InstId), u32>,
    list: Vec<Place>,
}

impl<'a> Places<'a> {
    /// Creates an empty list of places.
    pub fn new(evaluation: &'a Evaluation) -> Self {
        Self { evaluation, known: HashMap::new(), list: Vec::new() }
    }

    fn key(&self, process: ProcessId, fact: &StaticInfo) -> (Option<ProcessId>, InstId) {
        ((!is_shared(fact)).then_some(process), fact.id)
    }

    /// Adds the place of an instruction as `process` executed it. An instruction that the trace does not know has no place.
    pub fn add(&mut self, process: ProcessId, inst: InstId) {
        let Some(fact) = self.evaluation.static_info.get(inst.0 as usize) else {
            return;
        };
        let (key, list) = (self.key(process, fact), &mut self.list);
        self.known.entry(key).or_insert_with(|| {
            list.push(place(self.evaluation, process, fact));
            list.len() as u32 - 1
        });
    }

    /// Takes all places out, to resolve them; the numbers of their locations stay known. Nothing may be added any more.
    pub fn take(&mut self) -> Vec<Place> {
        std::mem::take(&mut self.list)
    }

    /// Returns the number of an instruction's location.
    pub fn location(&self, process: ProcessId, inst: InstId) -> Option<u32> {
        let fact = self.evaluation.static_info.get(inst.0 as usize)?;
        self.known.get(&self.key(process, fact)).copied()
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
    let cycle = evaluation.first_use.get(fact.id.0 as usize).copied().unwrap_or(0);
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
