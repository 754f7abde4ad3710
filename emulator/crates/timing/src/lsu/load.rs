//! Loads: ports, translation, data banks, store queue, data cache.

use commit_trace::{CycleClass, TeaEvents};
use isa::MemAccess;

use super::queue::Store;
use super::{ANSWER, Access, Answer, BANKS, Issued, Lsu, RETRY, S0, SEARCH, STORE_PORT, class_of};
use crate::mem::Origin;
use crate::micro_op::{MicroOp, ring};
use crate::path::WalkReads;
use crate::schedule::Schedule;

/// A refused access is found by the queue's selection in the cycle after the refusal, and fired in the
/// next but one.
const REFUSED: u64 = 4;
/// Address search of a store to the exception in the ROB.
const REPORT: u64 = 2;

impl Lsu {
    /// Issues a load whose address is ready to be computed in cycle `ready`.
    #[inline(always)]
    pub(crate) fn issue_load(
        &mut self,
        micro_op: &MicroOp,
        ready: u64,
        schedule: &mut Schedule,
    ) -> Issued {
        let issued = self.load_ports.issue(schedule, ready, micro_op);
        if issued.displaces {
            self.counts.delayed_stores += 1;
            // The stores behind the displaced one are later, too: together they take one more slot.
            let (slot, _) = schedule.book(self.written + 1 - S0, STORE_PORT, 0);
            self.written = slot + S0;
        }
        issued
    }

    /// Executes a load that issued. `head`: first cycle in which it is the oldest instruction.
    #[inline(always)]
    pub(crate) fn load(
        &mut self,
        micro_op: &MicroOp,
        load: &Access<'_>,
        issued: Issued,
        head: u64,
        schedule: &mut Schedule,
    ) -> Answer {
        self.counts.loads[usize::from(micro_op.file % 4)] += 1;
        let first = issued.cycle + S0;
        if load.mmio {
            self.counts.late_loads[CycleClass::Device as usize] += 1;
            return self.device(first, head);
        }
        let mut s0 = self.translate(first, load.walk);
        let mut tea = TeaEvents::default();
        if s0 != first {
            self.counts.load_walks += 1;
            tea = TeaEvents::ST_TLB;
        } else if self.banked && self.conflicts(load.pa, s0, issued.first) {
            self.counts.bank_conflicts += 1;
            s0 = self.try_again(load.pa, s0, micro_op, schedule);
        } else if self.l1d.is_replaying(s0 + 2) {
            self.counts.refused += 1;
            s0 += REFUSED;
        }
        // Integer loads that go through at once wake their dependents early, FP loads never do.
        let early = u64::from(s0 == first && micro_op.file == ring::INT);
        match self.stores.find(load.store, s0 + SEARCH) {
            Some(store) => self.behind(&store, load, s0, early, tea),
            None => self.read_cache(load.pa, s0, early, tea),
        }
    }

    /// Has the data cache answer a load.
    #[inline(always)]
    fn read_cache(&mut self, pa: u64, s0: u64, early: u64, tea: TeaEvents) -> Answer {
        let done = s0 + ANSWER;
        match self.l1d.access(self.line(pa), s0 + 2, Origin::Load, &mut self.lower) {
            None => Answer::new(done - early, done, CycleClass::LoadL1, tea),
            Some((ready, level)) => {
                let (class, missed) = class_of(level);
                self.counts.late_loads[class as usize] += 1;
                let done = done.max(ready);
                Answer::new(done, done, class, tea | missed)
            }
        }
    }

    /// Answers a load that follows a store to its bytes. If the store's address is not in the queue when the load searches, the load reads the cache
    /// and fails its order.
    #[inline(never)]
    fn behind(
        &mut self,
        store: &Store,
        load: &Access<'_>,
        s0: u64,
        early: u64,
        tea: TeaEvents,
    ) -> Answer {
        if store.address <= s0 + SEARCH {
            return self.forward(store, load.store.covers, s0, early, tea);
        }
        Answer { failed: Some(store.address + REPORT), ..self.read_cache(load.pa, s0, early, tea) }
    }

    /// Answers a load that finds a store to its bytes in the queue: by the store's data or, if that is not all of
    /// them, by the cache after the store is gone.
    #[inline(always)]
    fn forward(
        &mut self,
        store: &Store,
        covers: bool,
        s0: u64,
        early: u64,
        tea: TeaEvents,
    ) -> Answer {
        self.counts.forwards += 1;
        let (wanted, class) = if covers {
            (store.data.saturating_sub(S0), CycleClass::LoadL1)
        } else {
            (store.gone + 1, CycleClass::Store)
        };
        let (s0, early) = if wanted <= s0 {
            (s0, early)
        } else {
            let waits = match covers {
                true => &mut self.counts.forward_waits,
                false => &mut self.counts.partial_forwards,
            };
            *waits += 1;
            (self.retry(s0, wanted), 0)
        };
        let done = s0 + ANSWER;
        Answer::new(done - early, done, class, tea)
    }

    /// Returns the S0, not before `wanted`, in which a load that waits for a store gets its data. One port retries the waiting loads in turn, each
    /// every third cycle, and starts where the load before left off. If the core has no other port, each access that enters takes the cycle of a try
    /// and shifts the later tries by one. The accesses that enter between two waiting loads are taken to be those between the two loads in program
    /// order.
    #[cold]
    fn retry(&mut self, s0: u64, wanted: u64) -> u64 {
        let entered = self.counts.all_loads() + self.counts.stores;
        let first = if s0 <= self.retried {
            let shift = (entered - self.entered) % RETRY;
            self.retried + 1 + if self.single { shift } else { 0 }
        } else {
            s0
        };
        let s0 = first + wanted.saturating_sub(first).next_multiple_of(RETRY);
        self.retried = s0;
        self.entered = entered;
        s0
    }

    /// Returns true if an access conflicts with another of its cycle: they read different 16-byte rows of one bank;
    /// stores read, too. The access on the first port goes through (`lsu/dcache.scala:318-333`).
    #[inline(always)]
    fn conflicts(&mut self, pa: u64, s0: u64, first: bool) -> bool {
        let row = self.row(pa);
        let entry = &mut self.rows[s0 as usize % BANKS];
        if first {
            *entry = (s0, row);
            return false;
        }
        entry.0 == s0 && entry.1 & 1 == row & 1 && entry.1 != row
    }

    /// Returns S0 in which a load that met another in its bank goes through. It is tried again on the last port only
    /// (`lsu/lsu.scala:512-535`), where it takes a slot, and may meet what the first port does then. Not modelled:
    /// younger loads that issue take that slot first, so that in the RTL some wait for 30 cycles.
    #[cold]
    fn try_again(&mut self, pa: u64, s0: u64, micro_op: &MicroOp, schedule: &mut Schedule) -> u64 {
        let last = micro_op.ports & !(1 << crate::micro_op::port::MEM);
        let mut s0 = s0;
        loop {
            let (slot, _) = schedule.book(s0 + REFUSED - S0, last, 0);
            s0 = slot + S0;
            self.counts.bank_retries += 1;
            if !self.conflicts(pa, s0, false) {
                return s0;
            }
        }
    }

    /// Returns the row of a way that an address is in.
    #[inline(always)]
    fn row(&self, pa: u64) -> u64 {
        pa >> 4 & self.row_mask
    }

    /// Notes that a store is written: its row is read on the first port.
    #[inline(always)]
    pub(super) fn reads_row(&mut self, pa: u64, s0: u64) {
        self.rows[s0 as usize % BANKS] = (s0, self.row(pa));
    }

    /// Reads a device register when the load is the oldest instruction, one access at a time.
    #[cold]
    fn device(&mut self, s0: u64, head: u64) -> Answer {
        self.counts.mmio += 1;
        let start = s0.max(head + 1).max(self.mmio_busy).max(self.stores.empty());
        let done = start + self.mmio_latency;
        self.mmio_busy = done;
        Answer::new(done, done, CycleClass::Device, TeaEvents::default())
    }

    /// Executes a load-reserved or the read of an atomic, alone in the machine, with its address in S0 = `s0`.
    pub(crate) fn atomic(
        &mut self,
        access: &MemAccess,
        s0: u64,
        walk: Option<&WalkReads>,
    ) -> Answer {
        self.counts.atomics += 1;
        if access.mmio() {
            return self.device(s0, s0);
        }
        let walked = self.translate(s0, walk);
        let tlb = if walked == s0 { TeaEvents::default() } else { TeaEvents::ST_TLB };
        let done = walked + ANSWER;
        let line = self.line(access.pa());
        let answer = self.l1d.access(line, walked + 2, Origin::Store, &mut self.lower);
        let (done, class, tea) = match answer.map(|(ready, level)| (ready, class_of(level))) {
            None => (done, CycleClass::Serialize, tlb),
            Some((ready, (CycleClass::LoadPeer, tea))) => {
                (done.max(ready), CycleClass::LoadPeer, tlb | tea)
            }
            Some((ready, (_, tea))) => (done.max(ready), CycleClass::Serialize, tlb | tea),
        };
        Answer::new(done, done, class, tea)
    }

    /// Issues a load or store that faults; returns the cycle of its issue, the port, and the cycle in which the ROB has
    /// the exception.
    pub(crate) fn fault(
        &mut self,
        micro_op: &MicroOp,
        ready: u64,
        schedule: &mut Schedule,
    ) -> (u64, u32, u64) {
        let (issue, port) = schedule.book(ready, micro_op.ports, micro_op.lanes);
        // Not modelled: the walk that found the fault.
        (issue, port, issue + S0 + ANSWER)
    }
}
