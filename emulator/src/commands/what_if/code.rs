//! The instructions that a program executed, as a graph: which follows which. It says where a chain is one, and what a select in the
//! place of a branch would select.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use isa::{DecodedInst, InstClass};
use timing::{Cause, Select};

/// Instructions of a branch's sides that a select takes the place of, at most.
const MOST_SELECTED: usize = 32;
/// Instructions that are searched for what wrote a register last, or for the way back to a branch, at most.
const MOST_SEARCHED: usize = 2000;

/// The instructions by address.
pub(super) struct Code(BTreeMap<u64, DecodedInst>);

impl Code {
    /// Instructions at these addresses, with their encodings.
    pub(super) fn new(executed: impl Iterator<Item = (u64, u32)>) -> Self {
        Self(executed.map(|(pc, raw)| (pc, isa::decode(raw))).collect())
    }

    /// Returns where a function goes on after an instruction: nowhere after returns and what serialises. A call is taken to
    /// come back, if `calls_return`.
    fn next(&self, pc: u64, calls_return: bool) -> impl Iterator<Item = u64> + '_ {
        use InstClass as C;
        let inst = self.0.get(&pc);
        let after = inst.map(|inst| pc.wrapping_add(inst.len.into()));
        let target = inst.map(|inst| pc.wrapping_add(inst.imm as i64 as u64));
        let found = match inst {
            None => [None, None],
            Some(inst) => match inst.class {
                C::Branch => [target, after],
                C::Jal if inst.rd == 0 => [target, None],
                C::Jal | C::Jalr if inst.rd != 0 && calls_return => [after, None],
                C::Jal | C::Jalr => [None, None],
                class if class.serialises() && !calls_return => [None, None],
                C::Xret | C::Illegal => [None, None],
                _ => [after, None],
            },
        };
        let found = found.into_iter().flatten();
        found.filter(|next| self.0.contains_key(next))
    }

    /// All that is reached from some addresses, with the least number of instructions before it; nothing beyond `end`.
    fn reached(&self, from: &[u64], end: u64, most: usize) -> HashMap<u64, usize> {
        let known = from.iter().filter(|pc| self.0.contains_key(*pc));
        let mut depth: HashMap<u64, usize> = known.map(|&pc| (pc, 0)).collect();
        let mut queue: VecDeque<u64> = depth.keys().copied().collect();
        while let Some(pc) = queue.pop_front() {
            let beyond = depth[&pc] + 1;
            if pc == end || beyond > most || depth.len() >= MOST_SEARCHED {
                continue;
            }
            for next in self.next(pc, false) {
                depth.entry(next).or_insert_with(|| {
                    queue.push_back(next);
                    beyond
                });
            }
        }
        depth
    }

    /// All that is reached from a branch on one of its sides, as [`Self::reached`], but not beyond a way back to an earlier instruction: what
    /// comes after that is another round of a loop.
    fn side(&self, branch: u64, first: u64, end: u64, most: usize) -> HashMap<u64, usize> {
        let mut depth = HashMap::from([(first, 0)]);
        let mut queue = VecDeque::from([(branch, first)]);
        while let Some((from, pc)) = queue.pop_front() {
            let beyond = depth[&pc] + 1;
            if pc <= from || pc == end || beyond > most {
                continue;
            }
            for next in self.next(pc, false) {
                let is_new = !depth.contains_key(&next);
                depth.entry(next).or_insert(beyond);
                if is_new {
                    queue.push_back((pc, next));
                }
            }
        }
        depth.retain(|pc, _| self.0.contains_key(pc));
        depth
    }

    /// An instruction may wait for what it computed itself: from it, its register reaches it again, and on the way only its own operation
    /// writes it, which reads it, too.
    pub(super) fn is_chain(&self, pc: u64) -> bool {
        let Some(link) = self.0.get(&pc) else {
            return false;
        };
        let mut seen = BTreeSet::new();
        let mut queue: Vec<u64> = self.next(pc, true).collect();
        while let Some(at) = queue.pop() {
            if at == pc {
                return true;
            }
            let inst = &self.0[&at];
            let is_link = inst.op == link.op && Cause::Chain.fits(inst);
            if inst.rd == link.rd && !is_link || seen.len() >= MOST_SEARCHED {
                continue;
            }
            if seen.insert(at) {
                queue.extend(self.next(at, true));
            }
        }
        false
    }

    /// The select that could take the place of a branch; or why none can.
    pub(super) fn select(&self, pc: u64) -> Result<Select, &'static str> {
        const APART: &str =
            "its sides do not meet again within 32 instructions, or not without a call";
        let Some(inst) = self.0.get(&pc) else {
            return Err(APART);
        };
        let taken = pc.wrapping_add(inst.imm as i64 as u64);
        let not_taken = pc.wrapping_add(inst.len.into());
        let sides = [taken, not_taken].map(|side| self.side(pc, side, pc, MOST_SELECTED));
        // The sides join where they meet first; if there is a loop, in the loop, and not where it is left.
        let meet = sides[0]
            .iter()
            .filter_map(|(&at, &of_taken)| Some((at, of_taken, *sides[1].get(&at)?)));
        let meet = meet.min_by_key(|&(at, a, b)| {
            let returns = self.reached(&[at], pc, MOST_SEARCHED).contains_key(&pc);
            (!returns, a.max(b), a + b, at)
        });
        let (join, ..) = meet.ok_or(APART)?;
        let between = self.between([taken, not_taken], pc, join);
        if between.len() > MOST_SELECTED {
            return Err(APART);
        }
        let written = between
            .iter()
            .map(|at| self.0[at].rd)
            .filter(|rd| (1..64).contains(rd))
            .fold(0, |all, rd| all | 1 << rd);
        match written {
            0 => Err("its sides compute nothing that could be selected"),
            written => Ok(Select { join, written }),
        }
    }

    /// The instructions of a branch's sides from which `join` is reached.
    fn between(&self, sides: [u64; 2], branch: u64, join: u64) -> BTreeSet<u64> {
        let of_side = |side| self.side(branch, side, join, 2 * MOST_SELECTED);
        let mut inside: HashMap<u64, usize> = sides.into_iter().flat_map(of_side).collect();
        inside.remove(&branch);
        let mut found = BTreeSet::new();
        loop {
            let more: Vec<u64> = inside
                .keys()
                .copied()
                .filter(|at| *at != join && !found.contains(at))
                .filter(|at| {
                    self.next(*at, false).any(|next| next == join || found.contains(&next))
                })
                .collect();
            if more.is_empty() {
                return found;
            }
            found.extend(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instructions of four bytes from 0x1000 on.
    fn code(instructions: &[u32]) -> Code {
        let at = (0x1000..).step_by(4);
        Code::new(at.zip(instructions.iter().copied()))
    }

    const fn r(funct: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
        (funct >> 3) << 25 | rs2 << 20 | rs1 << 15 | (funct & 7) << 12 | rd << 7 | 0x33
    }
    const fn add(rd: u32, rs1: u32, rs2: u32) -> u32 {
        r(0, rd, rs1, rs2)
    }
    const fn sltu(rd: u32, rs1: u32, rs2: u32) -> u32 {
        r(3, rd, rs1, rs2)
    }
    const fn lw(rd: u32, rs1: u32) -> u32 {
        rs1 << 15 | 2 << 12 | rd << 7 | 0x03
    }
    const fn beq(rs1: u32, rs2: u32, offset: i32) -> u32 {
        let o = offset as u32;
        (o >> 12 & 1) << 31
            | (o >> 5 & 63) << 25
            | rs2 << 20
            | rs1 << 15
            | (o >> 1 & 15) << 8
            | (o >> 11 & 1) << 7
            | 0x63
    }
    const CALL: u32 = 0x0000_00ef;
    const RET: u32 = 0x0000_8067;

    #[test]
    fn a_chain_is_what_it_wrote_itself() {
        // A loop: x15 is loaded, compared with itself and added up twice.
        let code = code(&[
            lw(15, 15),
            sltu(15, 15, 11),
            add(10, 10, 15),
            add(10, 10, 15),
            beq(1, 2, -16),
            RET,
        ]);
        assert!(!code.is_chain(0x1004), "what was loaded");
        assert!(code.is_chain(0x1008) && code.is_chain(0x100c), "sums");
        // Once only.
        let code = super::Code::new([(0x1000, add(10, 10, 15)), (0x1004, RET)].into_iter());
        assert!(!code.is_chain(0x1000));
    }

    #[test]
    fn sides_that_meet_can_be_selected() {
        // Over one instruction.
        let over = code(&[beq(15, 0, 8), add(6, 6, 7), add(28, 28, 6), RET]);
        let select = over.select(0x1000).unwrap();
        assert_eq!(select.join, 0x1008);
        assert_eq!(select.written, 1 << 6);
        // Two sides, each with its own way back to the loop's head, as compilers lay out binary searches.
        let search = code(&[
            lw(15, 10),      // 0x1000: head
            beq(15, 11, 16), // to 0x1014
            add(10, 10, 13), // 0x1008
            beq(12, 0, -12), // to the head
            RET,             // 0x1010
            add(13, 13, 14), // 0x1014
            beq(12, 0, -24), // to the head
            RET,
        ]);
        let select = search.select(0x1004).unwrap();
        assert_eq!(select.join, 0x1000);
        assert_eq!(select.written, 1 << 10 | 1 << 13);
        // A loop that is left comes back to its head by another round of the loop around it.
        let inner = code(&[
            add(5, 5, 6),    // 0x1000: head of the outer loop
            add(10, 10, 13), // 0x1004: head of the inner loop
            beq(12, 0, -4),  // back to it
            add(11, 11, 10), // 0x100c
            beq(1, 2, -16),  // back to the outer head
            RET,
        ]);
        assert!(inner.select(0x1008).is_err());
        // A call is no side that could be computed in any case; nor is nothing.
        let call = code(&[beq(15, 0, 12), add(6, 6, 7), CALL, add(28, 28, 6), RET]);
        assert!(call.select(0x1000).unwrap_err().contains("call"));
        let nothing = code(&[beq(15, 0, 8), beq(1, 2, 4), RET]);
        assert!(nothing.select(0x1000).unwrap_err().contains("nothing"));
    }
}
