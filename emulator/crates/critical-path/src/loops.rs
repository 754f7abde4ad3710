//! Natural loops of the code that was executed.

use std::collections::{BTreeMap, BTreeSet};

use commit_trace::{Class, InstId};

use crate::{Code, Excerpts};

/// A natural loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Function that the loop is in, as the caller numbers them.
    pub function: u32,
    /// First instruction of the loop, through which it is entered.
    pub header: InstId,
    /// Instructions of the loop, by address. Instructions of functions that it calls are not among them.
    pub body: Vec<InstId>,
    /// Index in the list of the smallest loop around this loop.
    pub parent: Option<usize>,
}

impl Loop {
    /// Returns whether `inst` is in the loop.
    pub fn has(&self, inst: InstId) -> bool {
        self.body.contains(&inst)
    }
}

/// Finds the loops of functions. `functions` has, by the function's number, the instructions that were executed at least once. The targets of
/// indirect jumps are those that `excerpts` show. Loops that are entered in several places are not found.
pub fn find_loops(
    code: &Code<'_>,
    excerpts: &Excerpts,
    functions: &BTreeMap<u32, Vec<InstId>>,
) -> Vec<Loop> {
    let mut jumps: BTreeMap<InstId, BTreeSet<InstId>> = BTreeMap::new();
    for pair in excerpts.list.iter().flat_map(|excerpt| excerpt.rows.windows(2)) {
        let is_indirect =
            code.info(pair[0].inst).is_some_and(|info| info.class == Class::IndirectJump);
        if is_indirect {
            jumps.entry(pair[0].inst).or_default().insert(pair[1].inst);
        }
    }
    let mut loops = Vec::new();
    for (&function, insts) in functions {
        loops.extend(Flow::new(code, &jumps, insts).loops(function));
    }
    loops.sort_by_key(|found: &Loop| (found.body.len(), found.header));
    for at in 0..loops.len() {
        let around = |outer: &Loop| {
            let inner = &loops[at];
            outer.function == inner.function
                && outer.header != inner.header
                && outer.has(inner.header)
        };
        // Loops are in order of size.
        let parent = (at + 1..loops.len()).find(|&outer| around(&loops[outer]));
        loops[at].parent = parent;
    }
    loops
}

/// Dominators of the instructions of a [`Flow`]: the instructions that every path to an instruction goes through.
struct Dominators {
    /// For each instruction, the number of its immediate dominator; for an entry, the number of instructions.
    of: Vec<usize>,
    /// For each instruction, its number in postorder: a dominator has a larger number than what it dominates.
    rank: Vec<usize>,
}

impl Dominators {
    /// Returns whether every path from an entry to `other` goes through `one`.
    fn dominates(&self, one: usize, mut other: usize) -> bool {
        while self.rank[other] < self.rank[one] {
            other = self.of[other];
        }
        other == one
    }
}

/// The control flow of a function, whose instructions are numbered in order of address.
struct Flow {
    insts: Vec<InstId>,
    next: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
}

impl Flow {
    fn new(code: &Code<'_>, jumps: &BTreeMap<InstId, BTreeSet<InstId>>, insts: &[InstId]) -> Self {
        let pc = |inst: &InstId| code.info(*inst).map_or(0, |info| info.pc);
        let mut insts = insts.to_vec();
        insts.sort_by_key(|inst| (pc(inst), *inst));
        insts.dedup_by_key(|inst| pc(inst));
        let by_pc: BTreeMap<u64, usize> = insts.iter().map(pc).zip(0..).collect();
        let by_inst: BTreeMap<InstId, usize> = insts.iter().copied().zip(0..).collect();
        let mut flow = Self {
            next: vec![Vec::new(); insts.len()],
            before: vec![Vec::new(); insts.len()],
            insts,
        };
        for at in 0..flow.insts.len() {
            let inst = flow.insts[at];
            let Some(info) = code.info(inst) else {
                continue;
            };
            let calls = code.get(inst).is_some_and(|inst| inst.calls());
            let jump = matches!(info.class, Class::Jump | Class::IndirectJump);
            let mut next: Vec<usize> = Vec::new();
            if !jump || calls {
                next.extend(by_pc.get(&info.pc.wrapping_add(info.len.into())));
            }
            if !calls {
                next.extend(info.target.and_then(|target| by_pc.get(&target)));
                let seen = jumps.get(&inst).into_iter().flatten();
                next.extend(seen.filter_map(|target| by_inst.get(target)));
            }
            for &to in &next {
                flow.before[to].push(at);
            }
            flow.next[at] = next;
        }
        flow
    }

    /// Finds dominators by the algorithm of K. Cooper, T. Harvey, K. Kennedy, "A Simple, Fast Dominance Algorithm". An
    /// instruction that nothing leads to is an entry.
    fn dominators(&self) -> Dominators {
        let count = self.insts.len();
        let root = count;
        let mut order = Vec::with_capacity(count);
        let mut seen = vec![false; count];
        let mut is_entry = vec![false; count];
        let leads = |at: &usize| self.before[*at].is_empty();
        // Instructions that only loops lead to come last: the first of them that is found is an entry, too.
        for entry in (0..count).filter(leads).chain(0..count) {
            if std::mem::replace(&mut seen[entry], true) {
                continue;
            }
            is_entry[entry] = true;
            let mut stack = vec![(entry, 0)];
            while let Some((at, done)) = stack.pop() {
                match self.next[at].get(done) {
                    Some(&to) => {
                        stack.push((at, done + 1));
                        if !std::mem::replace(&mut seen[to], true) {
                            stack.push((to, 0));
                        }
                    }
                    None => order.push(at),
                }
            }
        }
        let mut rank = vec![0; count + 1];
        for (number, &at) in order.iter().enumerate() {
            rank[at] = number;
        }
        rank[root] = count;
        let mut of = vec![usize::MAX; count + 1];
        of[root] = root;
        for at in (0..count).filter(|&at| is_entry[at]) {
            of[at] = root;
        }
        loop {
            let mut changed = false;
            for &at in order.iter().rev() {
                if is_entry[at] {
                    continue;
                }
                let mut dominator = usize::MAX;
                for &before in self.before[at].iter().filter(|&&before| of[before] != usize::MAX) {
                    dominator = match dominator {
                        usize::MAX => before,
                        mut one => {
                            let mut other = before;
                            while one != other {
                                match rank[one] < rank[other] {
                                    true => one = of[one],
                                    false => other = of[other],
                                }
                            }
                            one
                        }
                    };
                }
                // An instruction before `at` in this order leads to it, so that it has a dominator.
                if of[at] != dominator {
                    of[at] = dominator;
                    changed = true;
                }
            }
            if !changed {
                return Dominators { of, rank };
            }
        }
    }

    fn loops(&self, function: u32) -> Vec<Loop> {
        let dominators = self.dominators();
        let mut bodies: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (at, next) in self.next.iter().enumerate() {
            // The header need not be the lowest address: compilers rotate loops.
            for &header in next.iter().filter(|&&to| dominators.dominates(to, at)) {
                let body = bodies.entry(header).or_insert_with(|| [header].into());
                let mut open = vec![at];
                while let Some(at) = open.pop() {
                    if body.insert(at) {
                        open.extend(&self.before[at]);
                    }
                }
            }
        }
        let inst = |at: &usize| self.insts[*at];
        let found = bodies.iter().map(|(header, body)| Loop {
            function,
            header: inst(header),
            body: body.iter().map(inst).collect(),
            parent: None,
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use commit_trace::StaticInfo;

    use super::*;

    const NOP: u32 = 0x13;

    /// Returns the loops of a program of four-byte instructions at 0, 4, 8, …: a branch or a jump to a number, or nothing.
    fn loops(program: &[Option<(Class, u64)>]) -> Vec<(u32, Vec<u32>, Option<usize>)> {
        let info = |(number, to): (u32, &Option<(Class, u64)>)| StaticInfo {
            id: InstId(number),
            space: 2,
            pc: 4 * u64::from(number),
            raw: match to {
                None => NOP,
                Some((Class::Branch, _)) => 0x63,
                Some(_) => 0x6f,
            },
            len: 4,
            privilege: 0,
            class: to.map_or(Class::Int, |(class, _)| class),
            target: to.map(|(_, target)| 4 * target),
        };
        let static_info: Vec<_> = (0..).zip(program).map(info).collect();
        let insts = static_info.iter().map(|info| info.id).collect();
        let code = Code::new(&static_info);
        let found = find_loops(&code, &Excerpts::default(), &[(0, insts)].into());
        let number = |inst: &InstId| inst.0;
        found
            .iter()
            .map(|it| (it.header.0, it.body.iter().map(number).collect(), it.parent))
            .collect()
    }

    fn branch(to: u64) -> Option<(Class, u64)> {
        Some((Class::Branch, to))
    }

    fn jump(to: u64) -> Option<(Class, u64)> {
        Some((Class::Jump, to))
    }

    #[test]
    fn loops_are_nested_and_a_way_out_is_none() {
        // 0: 1: 2: if 5; 3: if 2; 4: goto 1; 5:
        let program = [None, None, branch(5), branch(2), jump(1), None];
        assert_eq!(loops(&program), [(2, vec![2, 3], Some(1)), (1, vec![1, 2, 3, 4], None)]);
    }

    #[test]
    fn two_ways_back_are_one_loop_and_two_ways_in_are_none() {
        assert_eq!(loops(&[None, branch(0), branch(0)]), [(0, vec![0, 1, 2], None)]);
        // A branch from 0 into the middle.
        assert_eq!(loops(&[branch(2), None, None, branch(1)]), []);
    }

    #[test]
    fn a_loop_that_is_entered_below_its_top_is_one() {
        // Control flow as in zlib's longest_match: 0: goto 4; 1: if 5; 2: 3: if 5; 4: if 1; 5: if 2 (from within); 6:
        let program = [jump(4), branch(5), None, branch(5), branch(1), branch(2), None];
        assert_eq!(loops(&program), [(4, vec![1, 2, 3, 4, 5], None)]);
        // A loop that is entered at 1 and has the lowest instruction that was executed: 0: 1: if 3; 2: goto 0; 3: 4: 5: goto 1
        let program = [None, branch(3), jump(0), None, jump(6), jump(1), None];
        assert_eq!(loops(&program), [(1, vec![0, 1, 2], None)]);
        // A jump back to the bottom's test: 0: goto 2; 1: 2: if 1
        assert_eq!(loops(&[jump(2), None, branch(1)]), [(2, vec![1, 2], None)]);
    }

    #[test]
    fn a_ring_without_a_way_in_is_a_loop_of_some_header() {
        // 0 goes nowhere; 2 and 3 lead to each other alone.
        let found = loops(&[jump(9), jump(9), None, jump(2)]);
        assert_eq!(found, [(2, vec![2, 3], None)]);
        for seed in 0..2000u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut below = |end: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % end
            };
            let program: Vec<_> = (0..12)
                .map(|_| match below(3) {
                    0 => None,
                    1 => branch(below(14)),
                    _ => jump(below(14)),
                })
                .collect();
            // The search comes to an end, whatever the program is.
            for (header, body, _) in loops(&program) {
                assert!(body.contains(&header), "{program:?}");
            }
        }
    }
}
