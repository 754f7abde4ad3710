//! Which process owns each address space.

use std::collections::BTreeMap;

use commit_trace::StaticInfo;

use crate::{ProcessId, Profile};

/// Returns the process that spent the most time in each user address space. Nothing else tells the owner, and nearly all
/// time is the owner's: the kernel reports a switch before the first instruction of the new process.
pub(super) fn owners(oracle: &Profile, static_info: &[StaticInfo]) -> BTreeMap<u32, ProcessId> {
    let mut units = BTreeMap::<u32, BTreeMap<ProcessId, u64>>::new();
    let mut add = |space: u32, process: ProcessId, weight: u64| {
        if space >= 2 {
            *units.entry(space).or_default().entry(process).or_default() += weight;
        }
    };
    // Instructions of a space mostly follow each other.
    let mut same = (0, ProcessId::BOOT, 0);
    for (process, inst, weight) in oracle.iter() {
        let Some(static_info) = static_info.get(inst.0 as usize) else {
            continue;
        };
        if (static_info.space, process) != (same.0, same.1) {
            add(same.0, same.1, same.2);
            same = (static_info.space, process, 0);
        }
        same.2 += weight;
    }
    add(same.0, same.1, same.2);
    let most = |by_process: BTreeMap<ProcessId, u64>| {
        by_process.into_iter().max_by_key(|(process, units)| (*units, std::cmp::Reverse(*process)))
    };
    units
        .into_iter()
        .filter_map(|(space, by_process)| most(by_process).map(|(process, _)| (space, process)))
        .collect()
}
