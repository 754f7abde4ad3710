//! Who waits for whom in an excerpt: operands by the encodings, stores by addresses, ports and places by the cycles.

use commit_trace::{DataSource, DispatchWait, Redirect};

use crate::code::{Code, Inst, Queue};
use crate::{Cause, Delays, Excerpt, InstTimes};

/// Rows that are searched before a row for what it waits for: more than any ROB has.
const REACH: usize = 512;

/// An operand of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// The row that produced the operand.
    pub producer: usize,
    /// True if the operand is data in memory, which the producer stored.
    pub in_memory: bool,
}

/// An excerpt with the dependences between its rows.
#[derive(Debug)]
pub struct Graph<'a> {
    pub(crate) excerpt: &'a Excerpt,
    delays: Delays,
    insts: Vec<Option<&'a Inst>>,
    operands: Vec<[Option<usize>; 3]>,
    /// For each row, the row that starts its fetch packet.
    packets: Vec<Option<usize>>,
    /// For each row, the store that answered its load.
    stores: Vec<Option<usize>>,
}

impl<'a> Graph<'a> {
    /// Finds the dependences of an excerpt's rows, which a core with these delays told.
    pub fn new(code: &'a Code<'_>, delays: Delays, excerpt: &'a Excerpt) -> Self {
        let rows = &excerpt.rows;
        let mut graph = Self {
            excerpt,
            delays,
            insts: rows.iter().map(|row| code.get(row.inst)).collect(),
            operands: Vec::with_capacity(rows.len()),
            packets: Vec::with_capacity(rows.len()),
            stores: Vec::with_capacity(rows.len()),
        };
        let mut writers: [Option<usize>; 64] = [None; 64];
        let mut packet = None;
        for (at, row) in rows.iter().enumerate() {
            packet = if row.delivered != 0 { Some(at) } else { packet };
            graph.packets.push(packet);
            let inst = graph.insts[at];
            let of = |register: u8| match register {
                0 => None,
                register => writers[usize::from(register) % 64],
            };
            let sources = inst.map_or([0; 3], |inst| inst.sources);
            graph.operands.push(sources.map(of));
            let store = graph.store_before(at);
            graph.stores.push(store);
            if let Some(inst) = inst
                && inst.destination != 0
                && !row.redirect.is_trap()
            {
                writers[usize::from(inst.destination) % 64] = Some(at);
            }
        }
        graph
    }

    /// Returns the excerpt.
    pub fn excerpt(&self) -> &'a Excerpt {
        self.excerpt
    }

    pub(crate) fn row(&self, at: usize) -> &'a InstTimes {
        &self.excerpt.rows[at]
    }

    pub(crate) fn inst(&self, at: usize) -> Option<&'a Inst> {
        self.insts[at]
    }

    fn is(&self, at: usize, test: impl Fn(&Inst) -> bool) -> bool {
        self.insts[at].is_some_and(test)
    }

    pub(crate) fn queue(&self, at: usize) -> Queue {
        self.insts[at].map_or(Queue::None, Inst::queue)
    }

    pub(crate) fn is_store(&self, at: usize) -> bool {
        self.is(at, Inst::is_store)
    }

    /// Returns the rows before row `at`, the youngest first.
    fn older(&self, at: usize) -> impl DoubleEndedIterator<Item = usize> + use<> {
        (at.saturating_sub(REACH)..at).rev()
    }

    /// Returns the youngest store before a load to the same eight bytes, if a store answered the load.
    fn store_before(&self, at: usize) -> Option<usize> {
        let load = self.row(at);
        if load.source != DataSource::StoreQueue || !self.is(at, Inst::is_load) {
            return None;
        }
        let block = |row: &InstTimes| row.pa >> 3;
        self.older(at).find(|&store| {
            self.is_store(store)
                && !self.row(store).redirect.is_trap()
                && block(self.row(store)) == block(load)
        })
    }

    /// Returns the operands of a row: what it reads in registers, and the store whose data it loads.
    pub fn dependences(&self, at: usize) -> impl Iterator<Item = Dependence> {
        let operands = self.operands[at].into_iter().flatten();
        let operands = operands.map(|producer| Dependence { producer, in_memory: false });
        operands.chain(self.stores[at].map(|producer| Dependence { producer, in_memory: true }))
    }

    /// Returns whether a row waits, through registers, for an earlier execution of its own instruction, as each step through a
    /// linked list waits for the step before.
    pub fn waits_for_itself(&self, at: usize) -> bool {
        let first = at.saturating_sub(REACH);
        let mut seen = vec![false; at - first];
        let mut open: Vec<usize> = self.operands[at].into_iter().flatten().collect();
        while let Some(row) = open.pop() {
            if row < first || std::mem::replace(&mut seen[row - first], true) {
                continue;
            }
            if self.row(row).inst == self.row(at).inst {
                return true;
            }
            open.extend(self.operands[row].into_iter().flatten());
        }
        false
    }

    /// Returns the row that starts the fetch packet of row `at`.
    pub(crate) fn packet(&self, at: usize) -> Option<usize> {
        self.packets[at]
    }

    /// Returns the row that starts the packet before the one that starts at row `start`.
    pub(crate) fn packet_before(&self, start: usize) -> Option<usize> {
        self.packets[start.checked_sub(1)?]
    }

    /// Returns the producer of the register operand that came last, and the cycle in which it came; for a store, of the address
    /// operand.
    pub(crate) fn last_operand(&self, at: usize) -> Option<(usize, u64)> {
        let used = if self.is_store(at) { 1 } else { 3 };
        let operands = self.operands[at].iter().take(used).flatten();
        operands
            .map(|&producer| (producer, self.row(producer).wake))
            .max_by_key(|&(producer, wake)| (wake, producer))
    }

    /// Returns the producer of a store's data.
    pub(crate) fn store_data(&self, at: usize) -> Option<usize> {
        self.operands[at][1].filter(|_| self.is_store(at))
    }

    /// Returns the first cycle in which nothing but ports keeps an instruction from issuing.
    pub fn ready(&self, at: usize) -> u64 {
        let wake = self.last_operand(at).map_or(0, |(_, wake)| wake);
        wake.max(self.row(at).dispatch + 1)
    }

    /// Returns the store whose data a load waited for after it had looked into the store queue.
    pub(crate) fn late_store(&self, at: usize) -> Option<usize> {
        let store = self.stores[at]?;
        let data = self.row(store).complete.saturating_sub(self.delays.store_data);
        (data > self.row(at).issue + self.delays.load_search).then_some(store)
    }

    /// Returns the row that had the port, or the unit, that row `at` waited for when it was ready, and the cause.
    pub(crate) fn port_holder(&self, at: usize) -> Option<(usize, Cause)> {
        let row = self.row(at);
        let inst = self.inst(at)?;
        if inst.divides() {
            let same = |other: &usize| self.is(*other, |other| other.class == inst.class);
            let before = self.older(at).find(same)?;
            let busy =
                self.row(before).wake > row.dispatch + 1 && self.row(before).issue + 1 < row.issue;
            if busy {
                return Some((before, Cause::DividerBusy));
            }
        }
        let issued = |other: &usize| {
            self.row(*other).issue + 1 == row.issue && self.queue(*other) == inst.queue()
        };
        // The oldest row that issued in the cycle before; if any of these rows is of the same class, the oldest of that class.
        let of_class = |other: &usize| self.is(*other, |other| other.class == inst.class);
        let holder = self
            .older(at)
            .rev()
            .filter(issued)
            .find(of_class)
            .or_else(|| self.older(at).rev().find(issued))?;
        Some((holder, Cause::Port))
    }

    /// Returns the row that gave back the place that the dispatch of row `at` waited for; true: by its issue, false: by its
    /// commit.
    pub(crate) fn place_giver(&self, at: usize) -> Option<(usize, bool)> {
        let row = self.row(at);
        let mut older = self.older(at);
        let left = |after: u64| move |other: &InstTimes| other.commit + after == row.dispatch;
        let issued = |queue| {
            let gave = move |other: &usize| {
                self.queue(*other) == queue && self.row(*other).issue + 1 == row.dispatch
            };
            self.older(at).rev().find(gave)
        };
        let by_commit = |giver: Option<usize>| giver.map(|giver| (giver, false));
        let by_issue = |giver: Option<usize>| giver.map(|giver| (giver, true));
        match row.wait {
            DispatchWait::None => None,
            DispatchWait::Rob => by_commit(older.find(|other| left(1)(self.row(*other)))),
            DispatchWait::Registers => {
                by_commit(older.find(|other| left(self.delays.register)(self.row(*other))))
            }
            DispatchWait::LoadQueue => by_commit(
                older.find(|&other| self.is(other, Inst::is_load) && left(1)(self.row(other))),
            ),
            // A place in the store queue is free when the store's line was written, some cycles after its commit.
            DispatchWait::StoreQueue => by_commit(
                older
                    .find(|&other| self.is_store(other) && self.row(other).written <= row.dispatch),
            ),
            DispatchWait::MemoryIssue => by_issue(issued(Queue::Memory)),
            DispatchWait::IntegerIssue => by_issue(issued(Queue::Integer)),
            DispatchWait::FpIssue => by_issue(issued(Queue::Fp)),
            DispatchWait::Tags => by_issue(
                older.find(|&other| self.row(other).issue + self.delays.branch_tag == row.dispatch),
            ),
            DispatchWait::Empty => by_commit(at.checked_sub(1)),
        }
    }

    /// Returns what made the fetch of a row's packet late.
    pub(crate) fn fetch_miss(&self, at: usize) -> Option<Cause> {
        let start = self.row(self.packet(at)?);
        match start.packet_source {
            _ if start.packet_translating != 0 => Some(Cause::FetchTlb),
            DataSource::L1 | DataSource::Unknown => None,
            _ => Some(Cause::FetchCache),
        }
    }

    /// Returns the row before the packet of row `at`, if that packet is the first after a redirect, and the cause.
    pub(crate) fn redirected_by(&self, at: usize) -> Option<(usize, Cause)> {
        let before = self.packet(at)?.checked_sub(1)?;
        match self.row(before).redirect {
            Redirect::None => None,
            Redirect::Mispredict => Some((before, Cause::Mispredict)),
            Redirect::Exception if self.excerpt.is_executed_anew(before) => {
                Some((before, Cause::MemoryOrdering))
            }
            Redirect::Flush | Redirect::Exception | Redirect::Interrupt => {
                Some((before, Cause::Flush))
            }
        }
    }
}
