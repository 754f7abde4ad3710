//! Basic blocks of the code that was executed.

use std::collections::BTreeMap;

use commit_trace::{Class, StaticInfo};

/// For every static instruction the address of the first one of its block, by instruction number.
///
/// A block begins at a direct branch's target, after a control transfer, and wherever the executed code is not
/// contiguous. Not modelled: the targets of indirect jumps into the middle of straight-line code (the stream's
/// static info do not have them), and code that was never executed. Functions' starts are added by the
/// caller, who has the symbols.
pub(super) fn leaders(static_info: &[StaticInfo]) -> Vec<u64> {
    let mut spaces: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, info) in static_info.iter().enumerate() {
        spaces.entry(info.space).or_default().push(index);
    }
    let mut leaders = vec![0; static_info.len()];
    for mut members in spaces.into_values() {
        members.sort_by_key(|&index| static_info[index].pc);
        let mut targets: Vec<u64> =
            members.iter().filter_map(|&index| static_info[index].target).collect();
        targets.sort_unstable();
        // The address after the instruction before, if that does not end its block; and the block's first address.
        let mut next: Option<u64> = None;
        let mut leader = 0;
        let mut before: Option<u64> = None;
        for index in members {
            let info = &static_info[index];
            // Different instructions that were at one address over time are in one block.
            let again = before == Some(info.pc);
            if !again && (next != Some(info.pc) || targets.binary_search(&info.pc).is_ok()) {
                leader = info.pc;
            }
            leaders[index] = leader;
            before = Some(info.pc);
            next = (!ends_block(info)).then(|| info.pc.wrapping_add(info.len.into()));
        }
    }
    leaders
}

/// True if the next instruction begins a block: after branches, jumps, and instructions that change the privilege
/// (`ecall`, `ebreak`, `sret`, `mret`).
fn ends_block(info: &StaticInfo) -> bool {
    match info.class {
        Class::Branch | Class::Jump | Class::IndirectJump => true,
        Class::System => {
            matches!(info.raw, 0x73 | 0x0010_0073 | 0x9002 | 0x1020_0073 | 0x3020_0073)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use commit_trace::InstId;

    fn info(
        id: u32,
        space: u32,
        pc: u64,
        len: u8,
        class: Class,
        target: Option<u64>,
    ) -> StaticInfo {
        StaticInfo { id: InstId(id), space, pc, raw: 0x13, len, privilege: 0, class, target }
    }

    #[test]
    fn blocks_begin_at_targets_after_branches_and_after_gaps() {
        let mut static_info = vec![
            info(0, 2, 0x100, 4, Class::Int, None),
            info(1, 2, 0x104, 2, Class::Load, None),
            info(2, 2, 0x106, 4, Class::Branch, Some(0x104)),
            info(3, 2, 0x10a, 4, Class::Int, None),
            info(4, 2, 0x200, 4, Class::Int, None),
            info(5, 2, 0x204, 4, Class::System, None),
            info(6, 2, 0x208, 4, Class::Int, None),
            info(7, 3, 0x104, 4, Class::Int, None),
            info(8, 3, 0x108, 4, Class::Int, None),
        ];
        static_info[5].raw = 0x73; // ecall
        let expected = [0x100, 0x104, 0x104, 0x10a, 0x200, 0x200, 0x208, 0x104, 0x104];
        assert_eq!(leaders(&static_info), expected);
    }

    #[test]
    fn an_address_with_two_encodings_is_one_block() {
        let static_info = [
            info(0, 1, 0x10, 4, Class::Int, None),
            info(1, 1, 0x14, 4, Class::Jump, Some(0x40)),
            info(2, 1, 0x14, 4, Class::Int, None),
        ];
        assert_eq!(leaders(&static_info), [0x10, 0x10, 0x10]);
    }
}
