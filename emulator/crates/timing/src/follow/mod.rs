//! What is counted only while a counter or the host asks for it, as it costs time: top-down slots of decode groups
//! ([`slots`]), what needs every instruction's record ([`records`]), and conditions.

mod at_commit;
mod heads;
mod kinds;
mod occupancy;
mod records;
mod slots;
mod watch;

use isa::{PerfEvent, Selection};

use crate::window::{Restart, Window};
use heads::Heads;
use kinds::Weights;
use slots::DecodeWatch;
use watch::Watch;

pub(crate) use at_commit::{class_of, happens, is_of_record};
pub(crate) use records::Follower;
pub(crate) use slots::{Group, Slots};

/// Programmable counters of a hart.
const COUNTERS: usize = 29;

/// Where following starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Width of decode.
    pub width: u32,
    /// Entries of the ROB.
    pub entries: u32,
    /// Cycle of the last commit.
    pub committed: u64,
    /// Cycle of the last decode.
    pub decoded: u64,
}

/// What the counters are set to, and what follows the core for them.
#[derive(Default)]
pub(crate) struct Selections {
    selections: [Selection; COUNTERS],
    /// The host asks for all totals.
    always: bool,
    /// Follows decode, while somebody asks for slots.
    pub slots: Option<Box<Slots>>,
    /// Somebody asks for what issues.
    pub issues: bool,
    /// Follows commit, while somebody asks for what it counts.
    pub follower: Option<Box<Follower>>,
}

snapshot::snapshot!(Selections { selections, always, slots, issues, follower });

/// Returns true if decode is followed for a counter.
fn is_of_decode(selection: Selection) -> bool {
    match selection.condition() {
        Some(_) => Weights::of(selection.events()).is_some(),
        None => selection.events().any(kinds::is_of_slots),
    }
}

/// Returns true if what decode waits for matters to a counter.
fn splits_waits(selection: Selection) -> bool {
    match selection.condition() {
        Some(_) => Weights::of(selection.events()).is_some_and(|weights| weights.tells_waits()),
        None => selection.events().any(kinds::is_of_some_waits),
    }
}

/// Returns true if commit is followed for a counter.
fn is_of_commit(selection: Selection) -> bool {
    match selection.condition() {
        Some(_) => Weights::of(selection.events()).is_none(),
        None => selection.events().any(records::is_counted),
    }
}

impl Selections {
    /// Follows decode and commit from now on, whatever the counters are set to.
    pub(crate) fn always(&mut self, start: Start) {
        self.always = true;
        self.issues = true;
        self.start(start);
    }

    /// Sets a counter.
    pub(crate) fn select(&mut self, counter: usize, selection: Selection, start: Start) {
        let Some(place) = self.selections.get_mut(counter) else {
            return;
        };
        *place = selection;
        let issues = |s: &Selection| s.events().any(PerfEvent::is_of_issue);
        self.issues = self.always || self.selections.iter().any(issues);
        self.start(start);
        if let Some(slots) = &mut self.slots {
            slots.forget(counter);
        }
        if let Some(follower) = &mut self.follower {
            follower.forget(counter);
        }
        let Some(condition) = selection.condition() else {
            return;
        };
        match (Weights::of(selection.events()), &mut self.slots) {
            (Some(weights), Some(slots)) => {
                let watch = Watch::new(condition, slots.decoded_in() + 1);
                slots.watch(DecodeWatch { counter, weights, watch });
            }
            _ => {
                if let Some(follower) = &mut self.follower {
                    follower.watch(counter, selection, condition);
                }
            }
        }
    }

    /// Starts and stops following what somebody asks for.
    fn start(&mut self, start: Start) {
        let Start { width, entries, committed, decoded } = start;
        if self.always || self.selections.iter().any(|&s| is_of_decode(s)) {
            let new = || Box::new(Slots::new(width, entries / width, decoded));
            let slots = self.slots.get_or_insert_with(new);
            let apart = self.always || self.selections.iter().any(|&s| splits_waits(s));
            slots.split_waits(apart.then(|| Heads::new(entries, width, committed)));
        } else {
            self.slots = None;
        }
        if self.always || self.selections.iter().any(|&s| is_of_commit(s)) {
            let new = || Box::new(Follower::new(committed));
            let follower = self.follower.get_or_insert_with(new);
            let sums = self.selections.iter().filter(|s| s.condition().is_none());
            follower.ask_for(self.always, sums.flat_map(|s| s.events()));
        } else {
            self.follower = None;
        }
    }

    /// Returns the total of what a counter is set to; `count` gives the total of an event.
    pub(crate) fn count(&self, counter: usize, count: impl Fn(PerfEvent) -> u64) -> u64 {
        let Some(selection) = self.selections.get(counter) else {
            return 0;
        };
        if selection.condition().is_none() {
            return selection.events().map(count).fold(0, u64::wrapping_add);
        }
        let decode = self.slots.as_ref().and_then(|slots| slots.watched(counter));
        let commit = || self.follower.as_ref()?.watched(counter);
        decode.or_else(commit).unwrap_or(0)
    }

    /// Returns the running total of an event that is followed; `restart`: why the last instruction redirected the front
    /// end, if it did.
    pub(crate) fn followed(&self, event: PerfEvent, restart: Option<Restart>) -> Option<u64> {
        match kinds::is_of_slots(event) {
            true => self.slots.as_ref()?.count(event, restart),
            false => self.follower.as_ref()?.count(event),
        }
    }

    /// Closes the cycles up to the commit of the instruction that left last, which changed the privilege: nothing more
    /// occurs in them, and whatever follows is of the new privilege.
    pub(crate) fn close_cycles(&mut self, window: &Window) {
        if let Some(slots) = &mut self.slots {
            slots.close_cycles(window);
        }
        if let Some(follower) = &mut self.follower {
            follower.close_cycles(window.committed);
        }
    }

    /// Leaves out the cycles from after `from` to `to`, in which the core sleeps.
    pub(crate) fn sleep(&mut self, from: u64, to: u64, window: &Window) {
        if let Some(slots) = &mut self.slots {
            slots.sleep(from, to, window);
        }
        if let Some(follower) = &mut self.follower {
            follower.sleep(from, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_to_be_followed_is() {
        for &event in PerfEvent::ALL {
            let of_commit = kinds::is_of_slots(event) || records::is_counted(event);
            let counted = of_commit || event.is_of_issue();
            assert_eq!(counted, event.is_followed(), "{event:?}");
        }
    }
}
