//! Where functions start in a file that has no symbols: where its code calls.
//!
//! Not found: functions that are reached by pointers and jumps alone. Their code counts as the function's before them.

use object::{Object, ObjectSection, SectionFlags, elf};

use super::elf::Elf;

/// More than any real file has.
const MAX_FUNCTIONS: usize = 4_000_000;
/// Sections of stubs, which are one function.
const STUB_SECTIONS: [&str; 3] = [".plt", ".plt.sec", ".iplt"];

/// The return address register, in which calls leave where to go on.
const RA: u32 = 1;
const JAL: u32 = 0x6f;
const JALR: u32 = 0x67;
const AUIPC: u32 = 0x17;

/// `(start, end)` of functions, by address and without gaps inside of a section: from each target of a call to the next one.
pub(super) fn functions(elf: &Elf<'_>) -> Vec<(u64, u64)> {
    let sections = code(elf);
    let mut targets: Vec<u64> = vec![elf.object.entry()];
    for (start, bytes) in &sections {
        called_from(*start, bytes, &mut targets);
    }
    targets.sort_unstable();
    targets.dedup();
    let mut found = Vec::new();
    for (start, bytes) in &sections {
        let end = start.saturating_add(bytes.len() as u64);
        let boundaries = boundaries(bytes);
        let is_start = |target: &&u64| {
            let within = **target - start;
            within.is_multiple_of(2) && boundaries[(within / 2) as usize]
        };
        let inside = targets.partition_point(|target| target <= start)
            ..targets.partition_point(|target| *target < end);
        let mut from = *start;
        for target in targets[inside].iter().filter(is_start) {
            found.push((from, *target));
            from = *target;
        }
        found.push((from, end));
        if found.len() > MAX_FUNCTIONS {
            return Vec::new();
        }
    }
    found.sort_unstable();
    found
}

/// The sections that hold instructions, with their addresses.
fn code<'data>(elf: &Elf<'data>) -> Vec<(u64, &'data [u8])> {
    let sections = elf.object.sections().filter(|section| {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
            return false;
        };
        let wanted = elf::SHF_EXECINSTR.0 | elf::SHF_ALLOC.0;
        let is_stub = section.name().is_ok_and(|name| STUB_SECTIONS.contains(&name));
        sh_flags.0 & wanted == wanted && !is_stub
    });
    sections
        .filter_map(|section| Some((section.address(), section.data().ok()?)))
        .filter(|(_, bytes)| bytes.len() >= 2)
        .collect()
}

fn halfword(bytes: &[u8], at: usize) -> Option<u32> {
    let two = bytes.get(at..at + 2)?;
    Some(u16::from_le_bytes([two[0], two[1]]).into())
}

/// Length in bytes of the instruction that begins with this halfword.
const fn length(first: u32) -> usize {
    if first & 3 == 3 { 4 } else { 2 }
}

/// Returns for each halfword whether an instruction begins there, if the code is read from its start on.
fn boundaries(bytes: &[u8]) -> Vec<bool> {
    let mut starts = vec![false; bytes.len().div_ceil(2)];
    let mut at = 0;
    while let Some(first) = halfword(bytes, at) {
        starts[at / 2] = true;
        at += length(first);
    }
    starts
}

/// Adds the targets of the calls in some code: `jal ra`, and `auipc` with `jalr ra` behind it.
fn called_from(start: u64, bytes: &[u8], targets: &mut Vec<u64>) {
    let mut at = 0;
    // Register and value of the instruction before, if that is an `auipc`.
    let mut upper: Option<(u32, u64)> = None;
    while let Some(first) = halfword(bytes, at) {
        let len = length(first);
        let second = halfword(bytes, at + 2).filter(|_| len == 4);
        let pc = start.wrapping_add(at as u64);
        let before = upper.take();
        if let Some(second) = second {
            let word = first | second << 16;
            let rd = word >> 7 & 31;
            match word & 0x7f {
                JAL if rd == RA => targets.push(pc.wrapping_add_signed(jal_offset(word))),
                AUIPC => {
                    let offset = i64::from((word & 0xffff_f000) as i32);
                    upper = Some((rd, pc.wrapping_add_signed(offset)));
                }
                JALR if rd == RA => {
                    let base = before.filter(|(register, _)| *register == word >> 15 & 31);
                    let low = i64::from(word as i32 >> 20);
                    targets.extend(base.map(|(_, value)| value.wrapping_add_signed(low) & !1));
                }
                _ => {}
            }
        }
        at += len;
    }
}

/// The distance of a `jal` (RISC-V unprivileged ISA, J-type).
const fn jal_offset(word: u32) -> i64 {
    let sign = (word as i32 >> 31) as i64;
    let low = word >> 21 & 0x3ff;
    let middle = word >> 20 & 1;
    let high = word >> 12 & 0xff;
    sign << 20 | (high << 12 | middle << 11 | low << 1) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_calls() {
        let word = |word: u32| word.to_le_bytes().to_vec();
        let code = [
            vec![0x01, 0x00],  // c.nop
            word(0x0100_00ef), // jal ra, +16
            word(0x0000_1097), // auipc ra, 1
            word(0xffc0_80e7), // jalr ra, -4(ra)
            word(0x0000_1317), // auipc t1, 1
            word(0x0003_0067), // jr t1: no call
            word(0xff1f_f06f), // j -16: no call
            word(0xfe5f_f0ef), // jal ra, -28
        ]
        .concat();
        let mut targets = Vec::new();
        called_from(0x1000, &code, &mut targets);
        assert_eq!(targets, [0x1012, 0x1006 + 0x1000 - 4, 0x101a - 28]);
        let starts = boundaries(&code);
        let expected: Vec<usize> = [0].into_iter().chain((2..30).step_by(4)).collect();
        let found: Vec<usize> =
            (0..starts.len()).filter(|at| starts[*at]).map(|at| 2 * at).collect();
        assert_eq!(found, expected);
    }
}
