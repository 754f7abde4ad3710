//! What the memory model allows of a program: all candidate executions are enumerated, and the axioms choose among them.
//!
//! The rules are those of the unprivileged manual's chapter *RVWMO Memory Consistency Model*, version 2.0: thirteen rules of preserved
//! program order, the load value axiom and the atomicity axiom. An execution is a choice of the store that each load reads from and of
//! an order of the stores to each word (coherence order). A global memory order that has the preserved program order and the load value
//! axiom exists if, and only if, two relations have no cycle: preserved program order with coherence order, reads from another hart
//! and from-reads; and accesses of one word in program order with the same three, own reads included.
//! An AMO is one memory operation that both loads and stores, as the manual has it.
//!
//! Not modelled: the progress axiom, as every program ends; mixed sizes; `fence.i` and I/O.

use std::collections::BTreeSet;

use crate::program::{Access, AccessKind, Field, Instruction, Outcome, Program, Value};

/// A memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// RVWMO, RISC-V's weak memory ordering.
    Rvwmo,
    /// Sequential consistency: every hart's accesses in program order.
    SequentialConsistency,
}

/// Returns all outcomes that a model allows of a program.
pub fn allowed_outcomes(program: &Program, model: Model) -> BTreeSet<Outcome> {
    let mut found = BTreeSet::new();
    let conditionals = count_conditionals(program);
    for failed in 0..1_u32 << conditionals {
        let events = Events::new(program, failed);
        events.enumerate(program, model, &mut found);
    }
    found
}

fn count_conditionals(program: &Program) -> usize {
    let instructions = program.harts.iter().flatten();
    let conditional = |i: &&Instruction| matches!(i, Instruction::Access(a) if a.kind == AccessKind::StoreConditional);
    instructions.filter(conditional).count()
}

/// A set of events, a bit for each.
type Set = u32;

/// A relation of events: for each event, those that it is related to.
#[derive(Clone)]
struct Relation(Vec<Set>);

impl Relation {
    fn new(events: usize) -> Self {
        Self(vec![0; events])
    }

    fn add(&mut self, from: usize, to: usize) {
        self.0[from] |= 1 << to;
    }

    fn has(&self, from: usize, to: usize) -> bool {
        self.0[from] >> to & 1 != 0
    }

    /// Removes, again and again, events that nothing is left to lead to; what then is left lies on a cycle, or behind one.
    fn is_acyclic(&self) -> bool {
        let mut left: Set = (1 << self.0.len()) - 1;
        while left != 0 {
            let targets = (0..self.0.len()).filter(|n| left >> n & 1 != 0);
            let reached = targets.fold(0, |reached, n| reached | self.0[n]);
            if left & !reached == 0 {
                return false;
            }
            left &= reached;
        }
        true
    }
}

/// A memory operation.
struct Event {
    hart: usize,
    /// Index of the instruction in its hart's.
    place: usize,
    access: Access,
}

/// The store that a load reads from: an event, or `None` for the zero that was there at first.
type Source = Option<usize>;

/// The memory operations of a program in one choice of which `sc.w` fail, and what of the model does not depend on who reads from whom.
struct Events {
    events: Vec<Event>,
    /// Registers that say that `sc.w` failed, by hart.
    failed: Vec<(usize, usize)>,
    /// Program order.
    order: Relation,
    /// Program order of accesses to one word.
    same_word: Relation,
    /// Rules of preserved program order that do not depend on who reads from whom: 1, 4 to 11 and 13.
    preserved: Relation,
    /// Address and data dependencies.
    dependencies: Relation,
    /// Pairs of `lr.w` and the `sc.w` that succeeds.
    pairs: Vec<(usize, usize)>,
}

impl Events {
    fn new(program: &Program, failed_conditionals: u32) -> Self {
        let mut events: Vec<Event> = Vec::new();
        let (mut failed, mut conditionals) = (Vec::new(), 0);
        for (hart, instructions) in program.harts.iter().enumerate() {
            for (place, instruction) in instructions.iter().enumerate() {
                let Instruction::Access(access) = *instruction else { continue };
                if access.kind == AccessKind::StoreConditional {
                    conditionals += 1;
                    if failed_conditionals >> (conditionals - 1) & 1 != 0 {
                        failed.extend(access.to.map(|to| (hart, to)));
                        continue;
                    }
                }
                events.push(Event { hart, place, access });
            }
        }
        let none = Relation::new(events.len());
        let mut made = Self {
            failed,
            order: none.clone(),
            same_word: none.clone(),
            preserved: none.clone(),
            dependencies: none,
            pairs: Vec::new(),
            events,
        };
        for b in 0..made.events.len() {
            for a in 0..b {
                if made.events[a].hart == made.events[b].hart {
                    made.relate(program, a, b);
                }
            }
        }
        made.add_rule_13();
        made
    }

    /// Adds what relates two operations of a hart, `a` before `b`.
    fn relate(&mut self, program: &Program, a: usize, b: usize) {
        let (first, second) = (&self.events[a], &self.events[b]);
        let (from, to) = (&first.access, &second.access);
        let between = &program.harts[first.hart][first.place + 1..second.place];
        let depends = |register: Option<usize>| register.is_some() && register == loaded(from);
        let stored = match to.value {
            Value::Register(register) => Some(register),
            Value::Constant(_) => None,
        };
        let by_address = depends(to.address_from);
        let by_data = to.kind.writes() && (depends(to.data_from) || depends(stored));
        let is_branch =
            |i: &Instruction| matches!(i, Instruction::Branch(on) if depends(Some(*on)));
        let by_control = to.kind.writes() && between.iter().any(is_branch);
        let is_ordering_fence =
            |i: &Instruction| matches!(i, Instruction::Fence(fence) if orders(fence, from, to));
        let is_ordered_by_fence = between.iter().any(is_ordering_fence);
        let annotated = |access: &Access| access.acquire || access.release;
        let same_word = from.location == to.location;
        let is_other_pair = |i: &Instruction| {
            let kind = |a: &Access| {
                matches!(a.kind, AccessKind::LoadReserved | AccessKind::StoreConditional)
            };
            matches!(i, Instruction::Access(access) if kind(access))
        };
        let is_pair = from.kind == AccessKind::LoadReserved
            && to.kind == AccessKind::StoreConditional
            && !between.iter().any(is_other_pair);
        let preserved = same_word && to.kind.writes() // rule 1
            || is_ordered_by_fence // rule 4
            || from.acquire // rule 5
            || to.release // rule 6
            || annotated(from) && annotated(to) // rule 7
            || is_pair // rule 8
            || by_address // rule 9
            || by_data // rule 10
            || by_control; // rule 11
        self.order.add(a, b);
        if same_word {
            self.same_word.add(a, b);
        }
        if preserved {
            self.preserved.add(a, b);
        }
        if by_address || by_data {
            self.dependencies.add(a, b);
        }
        if is_pair {
            self.pairs.push((a, b));
        }
    }

    /// Adds rule 13: a store after an instruction whose address depends on a load is after that load.
    fn add_rule_13(&mut self) {
        for b in 0..self.events.len() {
            if !self.events[b].access.kind.writes() {
                continue;
            }
            for m in (0..b).filter(|m| self.order.has(*m, b)) {
                for a in (0..m).filter(|a| self.order.has(*a, m)) {
                    let register = self.events[m].access.address_from;
                    if register.is_some() && register == loaded(&self.events[a].access) {
                        self.preserved.add(a, b);
                    }
                }
            }
        }
    }

    fn enumerate(&self, program: &Program, model: Model, found: &mut BTreeSet<Outcome>) {
        let writes = |location| -> Vec<usize> {
            let is_write = |n: &usize| {
                let access = &self.events[*n].access;
                access.kind.writes() && access.location == location
            };
            (0..self.events.len()).filter(is_write).collect()
        };
        let locations = program.locations();
        let reads: Vec<usize> =
            (0..self.events.len()).filter(|n| self.events[*n].access.kind.reads()).collect();
        let choices = reads.iter().map(|read| {
            let others = writes(self.events[*read].access.location);
            let others = others.into_iter().filter(|write| write != read);
            std::iter::once(None).chain(others.map(Some)).collect::<Vec<Source>>()
        });
        let sources = product(&choices.collect::<Vec<_>>());
        let coherence =
            product(&(0..locations).map(|l| permutations(&writes(l))).collect::<Vec<_>>());
        for orders in &coherence {
            for chosen in &sources {
                let mut source = vec![None; self.events.len()];
                for (read, from) in reads.iter().zip(chosen) {
                    source[*read] = *from;
                }
                if self.is_allowed(model, orders, &reads, &source) {
                    found.extend(self.outcome(program, orders, &source));
                }
            }
        }
    }

    /// Applies the axioms to a candidate execution: the stores to each word in coherence order, and where each load reads from.
    fn is_allowed(
        &self,
        model: Model,
        orders: &[Vec<usize>],
        reads: &[usize],
        source: &[Source],
    ) -> bool {
        let count = self.events.len();
        // Coherence order, from-reads, and reads from another hart.
        let mut communication = Relation::new(count);
        let mut coherence = Relation::new(count);
        let mut from_reads = Relation::new(count);
        for order in orders {
            for (n, earlier) in order.iter().enumerate() {
                for later in &order[n + 1..] {
                    coherence.add(*earlier, *later);
                    communication.add(*earlier, *later);
                }
            }
        }
        let mut own_reads = Relation::new(count);
        for &read in reads {
            let order = &orders[self.events[read].access.location];
            let after = match source[read] {
                Some(write) => {
                    if self.events[write].hart == self.events[read].hart {
                        own_reads.add(write, read);
                    } else {
                        communication.add(write, read);
                    }
                    1 + order.iter().position(|w| *w == write).expect("a store has its place")
                }
                None => 0,
            };
            for later in order[after..].iter().filter(|later| **later != read) {
                from_reads.add(read, *later);
                communication.add(read, *later);
            }
        }
        let united = |with: &[&Relation]| {
            let mut all = communication.clone();
            for relation in with {
                for (all, set) in all.0.iter_mut().zip(&relation.0) {
                    *all |= set;
                }
            }
            all
        };
        // An AMO that reads what it stores itself, or what is stored after it, is a cycle of one or two events.
        if !united(&[&self.same_word, &own_reads]).is_acyclic() {
            return false;
        }
        let is_ordered = match model {
            Model::SequentialConsistency => united(&[&self.order, &own_reads]).is_acyclic(),
            Model::Rvwmo => {
                let rest = self.preserved_by_sources(source);
                united(&[&self.preserved, &rest]).is_acyclic()
            }
        };
        // The atomicity axiom: no other hart stores between what `lr.w` reads and what its `sc.w` stores.
        let is_atomic = self.pairs.iter().all(|&(load, store)| {
            !(0..count).any(|other| {
                self.events[other].hart != self.events[load].hart
                    && from_reads.has(load, other)
                    && coherence.has(other, store)
            })
        });
        is_ordered && is_atomic
    }

    /// Returns what of preserved program order depends on who reads from whom: rules 2, 3 and 12.
    fn preserved_by_sources(&self, source: &[Source]) -> Relation {
        let mut preserved = Relation::new(self.events.len());
        let access = |n: usize| &self.events[n].access;
        for b in (0..self.events.len()).filter(|b| access(*b).kind.reads()) {
            for a in (0..b).filter(|a| self.order.has(*a, b)) {
                let between = || (a + 1..b).filter(|m| self.order.has(a, *m));
                let stores_between =
                    || between().any(|m| self.same_word.has(m, b) && access(m).kind.writes());
                let rule_2 = self.same_word.has(a, b)
                    && access(a).kind.reads()
                    && !stores_between()
                    && source[a] != source[b];
                let is_atomic =
                    access(a).kind.is_amo() || access(a).kind == AccessKind::StoreConditional;
                let rule_3 = is_atomic && source[b] == Some(a);
                let rule_12 =
                    between().any(|m| source[b] == Some(m) && self.dependencies.has(a, m));
                if rule_2 || rule_3 || rule_12 {
                    preserved.add(a, b);
                }
            }
        }
        preserved
    }

    /// Returns the outcome of an execution; `None` if a value would come out of thin air.
    fn outcome(
        &self,
        program: &Program,
        orders: &[Vec<usize>],
        source: &[Source],
    ) -> Option<Outcome> {
        let mut loads: Vec<Option<u32>> = vec![None; self.events.len()];
        let mut stores = loads.clone();
        for _ in 0..=self.events.len() {
            for (n, event) in self.events.iter().enumerate() {
                let access = &event.access;
                if access.kind.reads() {
                    loads[n] = match source[n] {
                        Some(write) => stores[write],
                        None => Some(0),
                    };
                }
                let operand = match access.value {
                    Value::Constant(value) => Some(value),
                    Value::Register(register) => {
                        let is_it =
                            |e: &Event| e.hart == event.hart && loaded(&e.access) == Some(register);
                        self.events.iter().position(is_it).and_then(|n| loads[n])
                    }
                };
                stores[n] = match access.kind {
                    AccessKind::Or => loads[n].zip(operand).map(|(loaded, value)| loaded | value),
                    AccessKind::Add => loads[n].zip(operand).map(|(loaded, value)| loaded + value),
                    _ => operand,
                };
            }
        }
        let mut outcome = 0;
        for (n, field) in program.fields.iter().enumerate() {
            let value = match *field {
                Field::Memory(location) => match orders[location].last() {
                    Some(write) => stores[*write]?,
                    None => 0,
                },
                Field::Register(hart, register) => {
                    let is_it = |e: &Event| e.hart == hart && e.access.to == Some(register);
                    match self.events.iter().position(is_it) {
                        Some(n) if self.events[n].access.kind.reads() => loads[n]?,
                        Some(_) => 0,
                        None => {
                            assert!(self.failed.contains(&(hart, register)));
                            1
                        }
                    }
                }
            };
            assert!(value < 4, "{}: a value has more than 2 bits", program.name);
            outcome |= value << (2 * n);
        }
        Some(outcome)
    }
}

/// Returns the register that an access loads the word into. What `sc.w` writes to a register is not the word.
fn loaded(access: &Access) -> Option<usize> {
    access.to.filter(|_| access.kind.reads())
}

/// Returns whether a fence orders an access before it and one after it.
fn orders(fence: &crate::program::Fence, from: &Access, to: &Access) -> bool {
    if fence.tso {
        return from.kind.reads() || from.kind.writes() && to.kind.writes();
    }
    let meets =
        |set: (bool, bool), kind: AccessKind| set.0 && kind.reads() || set.1 && kind.writes();
    meets(fence.predecessors, from.kind) && meets(fence.successors, to.kind)
}

/// Returns all choices of one element of each list.
fn product<T: Clone>(lists: &[Vec<T>]) -> Vec<Vec<T>> {
    lists.iter().fold(vec![Vec::new()], |chosen, list| {
        let extend = |chosen: &Vec<T>| {
            let chosen = chosen.clone();
            list.iter().map(move |one| [&chosen[..], std::slice::from_ref(one)].concat())
        };
        chosen.iter().flat_map(extend).collect()
    })
}

fn permutations(list: &[usize]) -> Vec<Vec<usize>> {
    if list.is_empty() {
        return vec![Vec::new()];
    }
    let begin_with = |n: usize| {
        let rest = [&list[..n], &list[n + 1..]].concat();
        permutations(&rest).into_iter().map(move |rest| [&[list[n]], &rest[..]].concat())
    };
    (0..list.len()).flat_map(begin_with).collect()
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
