//! Stores: address and data, each when it is ready; then the write after commit.

use commit_trace::{CycleClass, TeaEvents};

use super::queue::Store;
use super::{Access, Answer, Lsu, S0, STORE_PORT};
use crate::micro_op::{MicroOp, port};
use crate::schedule::{Schedule, lane};
use crate::units::Issued;

/// Cycles from issue to the one in which address or data are in the queue.
const IN_QUEUE: u64 = 3;
/// Cycles from the data in the queue to the first commit: search, the ROB's busy bit.
pub(crate) const STORE_DATA_DONE: u64 = 2;
/// Cycles from issue to the first commit.
const STORE_DONE: u64 = IN_QUEUE + STORE_DATA_DONE;
/// Cycles from S0 of the write to the entry's reuse.
const WRITTEN: u64 = 4;

/// A store that was executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreTimes {
    /// Cycle in which the address is in the queue.
    address_in: u64,
    /// Cycle in which the data is in the queue.
    data_in: u64,
    /// Cycle in which the address issued.
    pub issue: u64,
    /// Cycle in which the data issued.
    pub data_issue: u64,
    /// Bits of the ports of what issued first and second; 0 if data issued with the address.
    pub ports: [u32; 2],
    pub answer: Answer,
}

impl StoreTimes {
    /// Counts what issued of a store that was dispatched in cycle `dispatch`.
    pub(crate) fn count(&self, dispatch: u64, issued: &mut Issued) {
        let [address, data] = [self.issue, self.data_issue].map(|cycle| cycle - dispatch);
        match self.ports {
            [port, 0] => issued.count(port, lane::MEM, address),
            // FP data has a slot of its own, other data is in one with the address.
            [first, second] if second >> port::FP != 0 => {
                issued.count(first, lane::MEM, address);
                issued.count(second, lane::FP, data);
            }
            [first, second] => {
                issued.count(first, lane::MEM, 0);
                issued.count(second, lane::MEM, address.max(data));
            }
        }
    }
}

impl Lsu {
    /// Executes a store whose address and data are ready in the cycles given. `fp`: the port that FP data issues to.
    #[inline(always)]
    pub(crate) fn store(
        &mut self,
        micro_op: &MicroOp,
        store: &Access<'_>,
        (address_ready, data_ready): (u64, u64),
        fp: Option<u32>,
        schedule: &mut Schedule,
    ) -> StoreTimes {
        self.counts.stores += 1;
        let (address, data_issue, ports) = match fp {
            None => issue(micro_op, address_ready, data_ready, schedule),
            Some(port) => {
                self.counts.fp_stores += 1;
                // FP data waits in the FP queue, its address in the memory queue.
                let (address, first) = schedule.book(address_ready, micro_op.ports, lane::MEM);
                let (data, second) = schedule.book(data_ready, port, lane::FP);
                // On its way to the queue no unit of the FP pipeline works on the data (`exu/execution-units/execution-unit.scala:551`).
                (address, data, [first, second])
            }
        };
        let first = address + S0;
        let s0 = self.translate(first, store.walk);
        self.counts.dtlb_store_misses += u64::from(store.walk.is_some());
        let tea = if s0 == first { TeaEvents::default() } else { TeaEvents::ST_TLB };
        let done = (s0 - S0 + STORE_DONE).max(data_issue + STORE_DONE);
        StoreTimes {
            address_in: s0 - S0 + IN_QUEUE,
            data_in: data_issue + IN_QUEUE,
            issue: address,
            data_issue,
            ports,
            answer: Answer::new(done, done, CycleClass::Store, tea),
        }
    }

    /// Writes a store that committed in `cycle`; returns the cycle in which its queue entry is free again. Stores are
    /// written in order, one a cycle, when no load wants the port. A miss does not hold the queue up, unless no MSHR
    /// takes it.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        store: &Access<'_>,
        times: &StoreTimes,
        cycle: u64,
        schedule: &mut Schedule,
    ) -> u64 {
        let gone = if store.mmio {
            self.write_device(cycle)
        } else {
            let ready = (cycle + 1).max(self.written + 1);
            let (slot, _) = schedule.book(ready - S0, STORE_PORT, 0);
            let line = self.line(store.pa);
            let s2 = self.l1d.store(line, slot + S0 + 2, &mut self.lower);
            let s0 = s2 - 2;
            self.reads_row(store.pa, s0);
            self.written = s0;
            s0 + WRITTEN
        };
        self.stores.push(Store { address: times.address_in, data: times.data_in, gone });
        gone
    }

    /// Writes a device register; such writes go out one at a time, after the stores before them.
    #[cold]
    fn write_device(&mut self, cycle: u64) -> u64 {
        self.counts.mmio += 1;
        let start = (cycle + 1).max(self.written + 1).max(self.mmio_busy);
        let end = start + self.mmio_latency;
        self.mmio_busy = end;
        self.written = end;
        end + 1
    }
}

/// Issues an integer store: at once when both parts are ready, else each when it is. Returns the cycles of address and
/// data, and the ports of what issues first and second, if there are two.
#[inline(always)]
fn issue(
    micro_op: &MicroOp,
    address_ready: u64,
    data_ready: u64,
    schedule: &mut Schedule,
) -> (u64, u64, [u32; 2]) {
    let (first, port) = schedule.book(address_ready.min(data_ready), micro_op.ports, 0);
    let later = address_ready.max(data_ready);
    if later <= first {
        schedule.release(first + 1, micro_op.lanes);
        return (first, first, [port, 0]);
    }
    // The store keeps its one slot until both parts have issued.
    let (second, other) = schedule.book(later, micro_op.ports, micro_op.lanes);
    let ports = [port, other];
    if address_ready < data_ready { (first, second, ports) } else { (second, first, ports) }
}
