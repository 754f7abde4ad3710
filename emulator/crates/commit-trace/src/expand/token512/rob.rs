//! The reorder buffer, cycle by cycle, from records.

use std::collections::VecDeque;

use super::RobShape;
use super::layout::{SLOTS, Slot, Token};
use crate::Redirect;
use crate::walk::{Retired, WalkError};

/// An instruction that is in the ROB, or enters it later.
#[derive(Clone, Copy, Debug)]
struct Entry {
    pc: u64,
    /// First cycle in the ROB.
    dispatch: u64,
    /// Last cycle in the ROB.
    commit: u64,
    /// Number of the entry's ROB row, counted from where reading started.
    row: u64,
    /// The entry's place in the row.
    slot: usize,
    redirect: Redirect,
}

/// The instructions that the next tokens show, which have not committed. Only the right path is
/// known, so rows are counted as if there were no other; the numbering starts where reading did.
#[derive(Debug)]
pub(super) struct Rob {
    shape: RobShape,
    entries: VecDeque<Entry>,
    /// Last entry so far.
    last: Option<Entry>,
    /// Nothing enters up to this cycle: the stream starts after it, or the hart slept.
    floor: u64,
}

impl Rob {
    pub(super) fn new(shape: RobShape) -> Self {
        Self { shape, entries: VecDeque::new(), last: None, floor: 0 }
    }

    /// Notes that nothing enters up to `cycle`, and that what entered before has left.
    pub(super) fn start(&mut self, cycle: u64) {
        self.floor = cycle;
    }

    /// Returns the last cycle in which a known instruction leaves, or up to which nothing enters, whichever is later.
    pub(super) fn committed(&self) -> u64 {
        self.last.map_or(0, |last| last.commit).max(self.floor)
    }

    /// Adds the next record and returns the cycle in which its instruction enters the ROB.
    pub(super) fn push(&mut self, retired: &Retired<'_>) -> Result<u64, WalkError> {
        let commit = retired.commit.commit;
        let unsayable = |what| WalkError::Unsayable { seq: retired.seq, what };
        let (row, slot) = match &self.last {
            Some(last) if !retired.commit.first_of_row => (last.row, last.slot + 1),
            Some(last) => (last.row + 1, 0),
            None => (0, 0),
        };
        if slot >= SLOTS {
            return Err(unsayable("its ROB row has more than the five of a token"));
        }
        let shares = |last: &Entry| last.commit == commit && last.row != row;
        if self.last.as_ref().is_some_and(shares) {
            return Err(unsayable("instructions of two ROB rows commit in one cycle"));
        }
        let entry = Entry {
            pc: retired.static_info.pc,
            dispatch: self.enters(retired),
            commit,
            row,
            slot,
            redirect: retired.commit.redirect,
        };
        self.entries.push_back(entry);
        self.last = Some(entry);
        Ok(entry.dispatch)
    }

    /// Returns the instruction's first cycle in the ROB: not before that of the instruction before it, and not before there
    /// is room. Both bounds only matter to streams that no core made, and to residences longer than a record can say.
    fn enters(&self, retired: &Retired<'_>) -> u64 {
        let commit = retired.commit.commit;
        let mut enters = retired.commit.dispatch;
        if retired.saturated {
            enters = enters.min(self.committed().saturating_add(1));
        }
        let capacity = usize::from(self.shape.rows) * usize::from(self.shape.width);
        let room = self.entries.len().checked_sub(capacity);
        let free = room.map_or(0, |at| self.entries[at].commit.saturating_add(1));
        let before = self.last.map_or(0, |last| last.dispatch);
        enters.max(before).max(free).max(self.floor.saturating_add(1)).min(commit)
    }

    /// Returns the token of `cycle`, which must not be before the cycle of the last call. All that enters up to the cycle
    /// after `cycle` must be known.
    pub(super) fn token(&mut self, cycle: u64) -> Token {
        while self.entries.front().is_some_and(|e| e.commit < cycle) {
            self.entries.pop_front();
        }
        let inside = self.entries.partition_point(|e| e.dispatch <= cycle);
        let next = self.entries.get(inside);
        let after_last = self.last.map_or(0, |last| last.row + 1);
        let tail = next.map_or(self.number(after_last, 0), |e| self.number(e.row, e.slot));
        let mut token = Token {
            cycle,
            ready: true,
            empty: inside == 0,
            dispatching: next.is_some_and(|e| e.dispatch == cycle.saturating_add(1)),
            head: tail,
            tail,
            ..Token::default()
        };
        if inside == 0 {
            return token;
        }
        let (head, youngest) = (self.entries[0].row, self.entries[inside - 1].row);
        token.head = self.number(head, 0);
        token.ready = youngest - head + 1 < u64::from(self.shape.rows);
        let row = self.entries.iter().take(inside).take_while(|e| e.row == head);
        for entry in row {
            let is_leaving = entry.commit == cycle;
            let trap = entry.redirect.is_trap();
            token.exception |= is_leaving && trap;
            token.slots[entry.slot] = Slot {
                committing: is_leaving && !trap,
                valid: true,
                mispredicted: entry.redirect == Redirect::Mispredict,
                flushes: entry.redirect == Redirect::Flush,
                pc: entry.pc,
            };
        }
        token
    }

    /// Returns the number of an entry, as hardware counts entries.
    fn number(&self, row: u64, slot: usize) -> u16 {
        let row = (row % u64::from(self.shape.rows)) as u16;
        (row * self.shape.width).wrapping_add(slot as u16)
    }
}
