//! Spinning: loops that do nothing but wait for what another hart writes, told from work by their code.
//!
//! A loop spins if one time round differs from the next only by what memory holds (Li, Lebeck and Sorin, "Spin detection hardware for
//! improved management of multithreaded systems", IEEE TPDS 2006, watch registers and stores for that; a stream has no registers, but
//! has the code). The loop is a backward branch and what lies on the ways back to it. [`body`] decides from its instructions:
//!
//! - no instruction stores, calls or enters the kernel; an atomic may write the value again that it wrote before, if it is to get the old
//!   one (test and set). Ways back on which there is such an instruction are not of the loop;
//! - no register carries a value from one time round to the next, but for counters that do nothing except limit the waiting;
//! - whether the loop goes on depends on what it loads, or it has the hint `pause`.
//!
//! Cycles count as spinning from the [`LEAST_TURNS`]th time round on: a lock that is free is taken without spinning. Loops that call a
//! function each time round, store a count of their turns in memory, or write without success (`sc`) are not found, and count as other
//! work does.

mod body;

use std::collections::BTreeMap;

use commit_trace::{Class, CommitRecord, InstId, Span, State, StaticInfo};
use rustc_hash::FxHashMap;

use body::{BodyInst, MOST_INSTRUCTIONS, spinning_body};

/// Bytes from a loop's first instruction to its backward branch, at most.
const MOST_BYTES: u64 = 256;

/// Instructions of one loop in a row from which on their cycles can count as spinning. One instruction in so many is looked at
/// ([`SpinLoops::may_spin`]).
const LEAST_RUN: u32 = 16;

/// Times that the loop has to be gone round before its cycles count as spinning.
const LEAST_TURNS: u32 = 2;

/// A loop is known by address space, first address, and the address of its backward branch.
type LoopKey = (u32, u64, u64);

/// The loops of the code so far that only wait, and whether the hart is in one.
#[derive(Default)]
pub(crate) struct SpinLoops {
    /// The instruction at an address, by address space and address.
    at: FxHashMap<(u32, u64), BodyInst>,
    /// All short loops; those that spin have a body.
    loops: BTreeMap<LoopKey, Vec<InstId>>,
    /// Loops with instructions that were defined since the loops were looked at.
    unsettled: Vec<LoopKey>,
    /// For each instruction the loop that it is in, or none.
    place: Vec<Place>,
    /// Whether any loop spins.
    any: bool,
    now: Now,
}

/// An instruction's place in the widest loop that spins.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Number of the loop; 0: in none.
    of: u16,
    /// The instruction's place in the order of addresses.
    order: u16,
}

/// What the hart executed last.
#[derive(Clone, Copy, Default)]
struct Now {
    place: Place,
    /// Instructions in the loop in a row.
    run: u32,
    /// Times that the hart went back in the loop since it came into it.
    turns: u32,
}

impl SpinLoops {
    /// Takes the code of an instruction before it is executed.
    pub(crate) fn define(&mut self, info: &StaticInfo) {
        self.place.push(Place::default());
        self.at.insert((info.space, info.pc), BodyInst::new(info));
        let first = info.pc.saturating_sub(MOST_BYTES);
        let near = self.loops.range((info.space, first, 0)..=(info.space, info.pc, u64::MAX));
        let around = near.map(|(key, _)| *key).filter(|&(_, _, branch)| info.pc <= branch);
        self.unsettled.extend(around);
        if let Some(target) = info.target
            && matches!(info.class, Class::Branch | Class::Jump)
            && (first..=info.pc).contains(&target)
        {
            let key = (info.space, target, info.pc);
            self.loops.entry(key).or_default();
            self.unsettled.push(key);
        }
    }

    /// Returns whether the hart may spin while it executes these records, which [`Self::is_spinning`] is to be asked then. Otherwise they
    /// have been dealt with.
    #[inline]
    pub(crate) fn may_spin(&mut self, records: &[CommitRecord]) -> bool {
        if !self.unsettled.is_empty() {
            self.settle();
        }
        if !self.any {
            return false;
        }
        let is_in = |record: &CommitRecord| self.place_of(record).of != 0;
        // Whatever spins for `LEAST_RUN` instructions in a row is among these.
        let looked_at = records.chunks(LEAST_RUN as usize).filter_map(<[_]>::last);
        let may = self.now.run > 0 && records.first().is_some_and(is_in);
        let may = may || looked_at.fold(false, |any, record| any | is_in(record));
        if !may {
            self.now = Now::default();
        }
        may
    }

    /// Takes the next span, and returns whether the hart spins in all of it.
    #[inline]
    pub(crate) fn is_spinning(&mut self, span: &Span<'_>) -> bool {
        if !self.unsettled.is_empty() {
            self.settle();
        }
        if !self.any {
            return false;
        }
        let Now { place, run, turns } = self.now;
        let spins = run >= LEAST_RUN && turns >= LEAST_TURNS;
        if span.state != State::Computing {
            let charged = span.records.first();
            return spins && charged.is_some_and(|record| self.place_of(record).of == place.of);
        }
        for record in span.records {
            let place = self.place_of(record);
            let now = &mut self.now;
            *now = match place.of {
                0 => Now::default(),
                of if of == now.place.of => Now {
                    place,
                    run: now.run.saturating_add(1),
                    turns: now.turns.saturating_add(u32::from(place.order <= now.place.order)),
                },
                _ => Now { place, run: 1, turns: 0 },
            };
        }
        spins && self.now.run >= run && self.now.place.of == place.of
    }

    #[inline]
    fn place_of(&self, record: &CommitRecord) -> Place {
        self.place.get(record.inst.0 as usize).copied().unwrap_or_default()
    }

    /// Looks at the loops anew whose code has changed.
    #[cold]
    #[inline(never)]
    fn settle(&mut self) {
        let mut unsettled = std::mem::take(&mut self.unsettled);
        unsettled.sort_unstable();
        unsettled.dedup();
        let mut changes = false;
        for key in unsettled {
            let body = self.body_of(key);
            if let Some(known) = self.loops.get_mut(&key)
                && *known != body
            {
                *known = body;
                changes = true;
            }
        }
        if changes {
            self.place_all();
        }
    }

    /// Returns the body of a loop if it spins.
    fn body_of(&self, (space, first, branch): LoopKey) -> Vec<InstId> {
        let mut insts = Vec::new();
        let mut pc = first;
        while pc <= branch {
            let found = self.at.get(&(space, pc));
            insts.extend(found.copied());
            if insts.len() > MOST_INSTRUCTIONS {
                return Vec::new();
            }
            pc += found.map_or(2, |inst| u64::from(inst.len()));
        }
        spinning_body(&insts)
    }

    /// Gives each instruction its place in the widest loop that spins.
    fn place_all(&mut self) {
        let mut spinning: Vec<(&LoopKey, &Vec<InstId>)> =
            self.loops.iter().filter(|(_, body)| !body.is_empty()).collect();
        spinning.sort_by_key(|((space, first, branch), _)| (branch - first, *space, *first));
        self.any = !spinning.is_empty();
        self.place.fill(Place::default());
        // Wider loops come later, and take the place of narrower ones. The narrowest of more loops than a number tells apart count as work.
        let first = spinning.len().saturating_sub(usize::from(u16::MAX));
        for ((_, body), of) in spinning[first..].iter().zip(1..=u16::MAX) {
            for (inst, order) in body.iter().zip(0..) {
                if let Some(place) = self.place.get_mut(inst.0 as usize) {
                    *place = Place { of, order };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
