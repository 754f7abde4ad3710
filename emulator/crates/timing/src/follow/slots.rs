//! Top-down: what happens to each slot of decode, as many as the core is wide in each cycle.
//!
//! Kinds and names are those of the RISC-V performance events draft, with BOOM's definitions (riscv-boom, pull request 770) at the first level: a
//! slot belongs to the front end if it is empty although decode could take an instruction, and no recovery from a misprediction, flush or trap is
//! under way; recovery lasts until the next instruction is there; a slot in which decode has to wait belongs to the back end. Wrong paths are not
//! simulated. Behind a mispredicted branch, and behind what traps, full groups are taken to be decoded until the ROB is full: bad speculation; then
//! decode waits. Behind a serialising instruction decode waits until that has committed.
//!
//! The core says when it decodes a group. If the group is decoded in the cycle after the last group, and that redirected nothing, no more is noted.
//! The group has as many retiring slots as instructions; its other slots are counted as what all other kinds leave over.

use commit_trace::{CommitRecord, CycleClass};
use isa::PerfEvent;

use super::heads::{Heads, Stall};
use super::kinds::{COMMIT, FETCH_BANDWIDTH, KINDS, RETIRING, SlotKind, Weights, kinds, late};
use super::watch::Watch;
use crate::records::Records;
use crate::window::{Restart, Window};

/// Cycles from the restart of fetch to the decode of what it fetches, if nothing is in the way.
const REFILL: u64 = 5;

/// A counter's condition of what is decoded.
#[derive(Clone, Debug, Default)]
pub(super) struct DecodeWatch {
    pub counter: usize,
    pub weights: Weights,
    pub watch: Watch,
}

snapshot::snapshot!(DecodeWatch { counter, weights, watch });

/// A decode group that starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// Cycle of its decode.
    pub decode: u64,
    /// Cycle in which the last instruction before it was dispatched.
    pub dispatched: u64,
    /// Flags of its first record, among them the events that delayed it.
    pub mark: u32,
}

/// Counts slots.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    width: u32,
    rows: u32,
    /// Slots by kind. Three kinds follow from the rest: slots that retire, those that groups leave over without a
    /// restart, and those in which decode waits though something commits.
    totals: [u64; KINDS],
    /// Slots in which decode waits.
    waits: u64,
    /// Cycle after which slots are counted.
    began: u64,
    /// Cycles asleep since slots are counted.
    asleep: u64,
    /// Cycle after the one in which the last group was decoded, or up to which the core slept.
    plain: u64,
    /// True if no group is open, or groups are watched.
    slow: bool,
    /// The ROB's last stalls, by which waits are told apart while somebody asks for that.
    heads: Option<Heads>,
    /// There is a group whose own slots are not counted yet.
    open: bool,
    /// Instructions that left the ROB before the batch that is under way.
    sent: u64,
    /// Instructions that left the ROB before the batch, but did not retire or are of no group that is counted.
    others: u64,
    /// Instructions of the open group, or since the last group if none is open, less the records of the batch that is
    /// under way (wrapping).
    last: u64,
    watches: Vec<DecodeWatch>,
}

snapshot::snapshot!(Slots {
    width,
    rows,
    totals,
    waits,
    began,
    asleep,
    plain,
    slow,
    heads,
    open,
    sent,
    others,
    last,
    watches
});

impl Slots {
    /// Returns slot counters for a core of `width` with `rows` ROB rows, which decoded last in cycle `decoded`.
    pub(crate) fn new(width: u32, rows: u32, decoded: u64) -> Self {
        Self { width, rows, began: decoded, plain: decoded + 1, slow: true, ..Self::default() }
    }

    /// Returns the cycle of the last decode, or up to which the core slept.
    pub(crate) fn decoded_in(&self) -> u64 {
        self.plain - 1
    }

    /// Watches each cycle for a counter, too.
    pub(super) fn watch(&mut self, watch: DecodeWatch) {
        self.watches.push(watch);
        self.set_pace();
    }

    /// Watches nothing for a counter any more.
    pub(crate) fn forget(&mut self, counter: usize) {
        self.watches.retain(|watch| watch.counter != counter);
        self.set_pace();
    }

    /// Returns the cycles in which a counter's condition held.
    pub(crate) fn watched(&self, counter: usize) -> Option<u64> {
        let mut watches = self.watches.iter();
        let found = watches.find(|watch| watch.counter == counter);
        found.map(|found| found.watch.total)
    }

    /// Returns the total of an event. `restart`: why the last instruction redirected the front end, if it did. Called
    /// between batches.
    pub(crate) fn count(&self, event: PerfEvent, restart: Option<Restart>) -> Option<u64> {
        let kinds = kinds(event)?;
        let trap = u64::from(self.open && restart.is_some_and(Restart::is_trap));
        // All instructions that left are in a group while one is open; otherwise those since the last group are in
        // none.
        let (left, open) = match self.open {
            true => (self.sent, self.last - trap),
            false => (self.sent - self.last, 0),
        };
        let retired = left - self.others - trap;
        let cycles = self.decoded_in() - self.began - self.asleep - u64::from(self.open);
        let counted = cycles * u64::from(self.width) + open;
        let waits: u64 = self.totals[SlotKind::Waits as usize..].iter().sum();
        let lost: u64 = self.totals[..SlotKind::Waits as usize].iter().sum();
        let count = |&kind: &usize| match kind {
            RETIRING => retired,
            FETCH_BANDWIDTH => counted.saturating_sub(retired + lost + self.waits),
            COMMIT => self.waits - waits,
            kind => self.totals[kind],
        };
        Some(kinds.iter().map(count).sum())
    }

    /// Tells apart what decode waits for from now on, by the stalls in `heads`; `None`: no longer.
    pub(super) fn split_waits(&mut self, heads: Option<Heads>) {
        match heads {
            Some(heads) => _ = self.heads.get_or_insert(heads),
            None => self.heads = None,
        }
    }

    /// Notes all records of a batch, whose instructions left the ROB.
    pub(crate) fn sent(&mut self, records: &[CommitRecord]) {
        self.sent += records.len() as u64;
        self.last = self.last.wrapping_add(records.len() as u64);
        if let Some(heads) = &mut self.heads {
            heads.sent(records);
        }
    }

    /// Returns how many instructions the open group has or, if none is open, how many there are since the last one. The
    /// batch has `count` records.
    fn since_row(&self, count: usize) -> u64 {
        self.last.wrapping_add(count as u64)
    }

    /// Starts a group that is decoded in cycle `decode` and has its row of the window, but no records yet; the last
    /// instruction before it was dispatched in cycle `dispatched`. Returns false, and starts none, if there is more to
    /// count than cycles in which decode waited: that is for [`Self::start_group`].
    #[inline(always)]
    pub(crate) fn start_at_once(
        &mut self,
        decode: u64,
        dispatched: u64,
        records: &Records,
        window: &Window,
    ) -> bool {
        if self.slow {
            return false;
        }
        if decode != self.plain {
            if decode != dispatched || window.restarted() || self.heads.is_some() {
                return false;
            }
            self.waits += (decode - self.plain) * u64::from(self.width);
        }
        self.start(decode, records);
        true
    }

    #[inline(always)]
    fn start(&mut self, decode: u64, records: &Records) {
        self.plain = decode + 1;
        self.last = (records.count as u64).wrapping_neg();
    }

    /// Starts a group, whatever there is to count before it.
    #[inline(always)]
    pub(crate) fn start_group(&mut self, group: Group, records: &Records, window: &Window) {
        let restart = window.restarted_by();
        if self.slow || (restart.is_some() && self.heads.is_some()) {
            return self.start_group_slowly(group, records, window);
        }
        let Group { decode, dispatched, mark } = group;
        let (from, width) = (self.plain, u64::from(self.width));
        let decode = decode.max(from);
        let waits = match restart {
            None => {
                let waits = dispatched.clamp(from, decode) - from;
                self.totals[late(mark) as usize] += (decode - from - waits) * width;
                if waits != 0 && self.heads.is_some() {
                    self.tell_apart(from, from + waits, records.so_far());
                }
                waits
            }
            Some(restart) => {
                let recovers = recovers(restart, from, decode, window);
                let waits = match restart {
                    Restart::Flush => recovers - from,
                    _ => recovers - from - self.wrong_groups(from, recovers, window),
                };
                // The slots that the last group left over are the restart's, too.
                let trap = u64::from(restart.is_trap());
                let retired = self.since_row(records.count) - trap;
                self.others += trap;
                self.totals[SlotKind::of(restart) as usize] +=
                    (decode + 1 - from - waits) * width - retired;
                waits
            }
        };
        self.waits += waits * width;
        self.start(decode, records);
    }

    /// Starts a group if none is open, as after a sleep, if groups are watched, or after a restart if waits are told
    /// apart.
    #[inline(never)]
    fn start_group_slowly(&mut self, group: Group, records: &Records, window: &Window) {
        let restart = window.restarted_by();
        if !self.open || restart.is_some() {
            self.close_group(records.count, restart);
        } else if !self.watches.is_empty() {
            let decoded = self.since_row(records.count) as u32;
            self.watch_group(decoded, decoded, FETCH_BANDWIDTH);
        }
        let from = self.plain;
        // Not before `from`: a group that was under way as counting began was decoded earlier.
        let decode = group.decode.max(from);
        match restart {
            Some(restart) => self.restarts(from, decode, restart, records.so_far(), window),
            None => {
                let waits = group.dispatched.clamp(from, decode);
                self.wait(from, waits, records.so_far());
                self.empty(waits, decode, late(group.mark));
            }
        }
        self.open = true;
        self.start(decode, records);
        self.set_pace();
    }

    /// Decides whether the next group has to be started slowly.
    fn set_pace(&mut self) {
        self.slow = !self.open || !self.watches.is_empty();
    }

    /// Counts the slots of the open group's own cycle. The batch has `count` records.
    #[inline(always)]
    fn close_group(&mut self, count: usize, restart: Option<Restart>) {
        let decoded = self.since_row(count);
        let trap = u64::from(restart.is_some_and(Restart::is_trap));
        if !std::mem::take(&mut self.open) {
            self.others += decoded;
            return;
        }
        self.others += trap;
        let (decoded, retired) = (decoded as u32, (decoded - trap) as u32);
        let rest = restart.map_or(SlotKind::FetchBandwidth, SlotKind::of) as usize;
        if rest != FETCH_BANDWIDTH {
            self.totals[rest] += u64::from(self.width.saturating_sub(retired));
        }
        self.watch_group(decoded, retired, rest);
    }

    /// Tells the watches of the last group's own cycle, see [`Weights::of_group`].
    #[inline(always)]
    fn watch_group(&mut self, decoded: u32, retired: u32, rest: usize) {
        let cycle = self.decoded_in();
        for DecodeWatch { weights, watch, .. } in &mut self.watches {
            let value = weights.of_group(self.width, decoded, retired, rest);
            watch.span(cycle, cycle + 1, value);
        }
    }

    /// Counts the slots from cycle `from` on after the last instruction restarted the front end, which has the next one
    /// for decode in cycle `decode`.
    fn restarts(
        &mut self,
        from: u64,
        decode: u64,
        restart: Restart,
        records: &[CommitRecord],
        window: &Window,
    ) {
        let recovers = recovers(restart, from, decode, window);
        let kind = SlotKind::of(restart);
        match restart {
            Restart::Flush => self.wait(from, recovers, records),
            _ => self.wrong_path((from, recovers), kind, records, window),
        }
        self.empty(recovers, decode, kind);
    }

    /// Returns how many groups of wrong instructions are decoded from cycle `from` to before `to`, one a cycle while
    /// the ROB has room. Rows only leave meanwhile, so there are as many as have room in the last cycle.
    #[inline(always)]
    fn wrong_groups(&self, from: u64, to: u64, window: &Window) -> u64 {
        let free = self.rows - window.rows_inside(to.saturating_sub(1));
        u64::from(free).min(to - from)
    }

    /// Counts the slots from cycle `from` to before `to`, in which wrong instructions are decoded while the ROB has
    /// room.
    #[inline(never)]
    fn wrong_path(
        &mut self,
        (from, to): (u64, u64),
        kind: SlotKind,
        records: &[CommitRecord],
        window: &Window,
    ) {
        if self.wrong_groups(from, to, window) == to - from {
            return self.empty(from, to, kind);
        }
        let (mut at, mut inside, mut wrong) = (from, window.rows_inside(from), 0);
        while at < to {
            while inside > 0 && window.left(inside - 1) < at {
                inside -= 1;
            }
            let room = u64::from(self.rows - inside).saturating_sub(wrong);
            let next = match (room, inside) {
                // Decode waits until a row leaves.
                (0, 1..) => to.min(window.left(inside - 1) + 1),
                (0, 0) => to,
                _ => to.min(at + room),
            };
            if room == 0 {
                self.wait(at, next, records);
            } else {
                wrong += next - at;
                self.empty(at, next, kind);
            }
            at = next;
        }
    }

    /// Counts the slots from cycle `from` to before `to`, in which decode waits: in each cycle for the oldest
    /// instruction.
    fn wait(&mut self, from: u64, to: u64, records: &[CommitRecord]) {
        self.waits += (to - from) * u64::from(self.width);
        if from == to {
            return;
        }
        match self.heads {
            Some(_) => self.tell_apart(from, to, records),
            None => notify_watches(&mut self.watches, self.width, (from, to), COMMIT),
        }
    }

    /// Counts the slots from cycle `from` to before `to`, in which decode waits, by what the oldest instruction waits
    /// for.
    #[inline(never)]
    fn tell_apart(&mut self, from: u64, to: u64, records: &[CommitRecord]) {
        let width = self.width;
        let Some(heads) = &mut self.heads else {
            return;
        };
        heads.learn(records);
        // Waits while nothing is in the ROB are counted as those for a serialising instruction.
        let none = Stall {
            before: heads.committed(),
            commit: to.max(heads.committed() + 1),
            class: CycleClass::Serialize as u8,
        };
        let mut from = from;
        while from < to {
            let stall = heads.after(from).unwrap_or(none);
            let stalls = (stall.before + 1).max(from).min(to);
            let ends = stall.commit.min(to);
            let kind = (SlotKind::Waits as usize + usize::from(stall.class)).min(KINDS - 1);
            self.totals[kind] += (ends - stalls) * u64::from(width);
            notify_watches(&mut self.watches, width, (from, stalls), COMMIT);
            notify_watches(&mut self.watches, width, (stalls, ends), kind);
            from = ends;
        }
    }

    /// Counts all slots from cycle `from` to before `to` as of a kind.
    #[inline]
    fn empty(&mut self, from: u64, to: u64, kind: SlotKind) {
        self.totals[kind as usize] += (to - from) * u64::from(self.width);
        notify_watches(&mut self.watches, self.width, (from, to), kind as usize);
    }

    /// Tells the watches now of the cycles up to the last commit, whose instruction changed the privilege, if it
    /// restarted the front end.
    pub(crate) fn close_cycles(&mut self, window: &Window) {
        let Some(restart) = window.restart().filter(|_| self.open && !self.watches.is_empty())
        else {
            return;
        };
        let from = self.plain;
        let to = (window.committed + 1).max(from);
        self.close_group(0, Some(restart));
        self.last = 0;
        match restart {
            Restart::Flush => self.wait(from, to, &[]),
            _ => self.wrong_path((from, to), SlotKind::of(restart), &[], window),
        }
        self.plain = to;
        self.set_pace();
    }

    /// Leaves out the cycles from after `from` to `to`, in which the core sleeps: they have no slots.
    pub(crate) fn sleep(&mut self, from: u64, to: u64, window: &Window) {
        let cycle = self.decoded_in();
        self.close_group(0, window.restart());
        self.last = 0;
        let asleep = (from + 1).max(cycle + 1);
        self.wait(cycle + 1, asleep, &[]);
        for DecodeWatch { watch, .. } in &mut self.watches {
            watch.skip(to + 1);
        }
        self.plain = cycle.max(to) + 1;
        self.asleep += self.plain - asleep;
        if let Some(heads) = &mut self.heads {
            heads.sleep(to);
        }
        self.set_pace();
    }
}

/// Returns the cycle from which slots are empty as fetch refills the front end, which was restarted and has the next
/// group for decode in cycle `decode`. The last group was decoded before cycle `from`.
#[inline(always)]
fn recovers(restart: Restart, from: u64, decode: u64, window: &Window) -> u64 {
    let recovers = match restart {
        Restart::Mispredict => decode.saturating_sub(REFILL),
        _ => window.committed + 1,
    };
    recovers.clamp(from, decode)
}

/// Tells watches that all slots from cycle `from` to before `to` are of a kind.
#[inline]
fn notify_watches(watches: &mut [DecodeWatch], width: u32, (from, to): (u64, u64), kind: usize) {
    for DecodeWatch { weights, watch, .. } in watches {
        if from < to {
            watch.span(from, to, weights.slots[kind] * width);
        }
    }
}
