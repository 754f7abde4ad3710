//! Loads: ports, translation, data banks, store queue, data cache.

use commit_trace::{CycleClass, TeaEvents};
use isa::{Executed, PageWalker};

use super::{ANSWER, Answer, BANKS, Lsu, RETRY, S0, class_of};
use crate::facts::{Fact, ring};
use crate::mem::LINE_BITS;
use crate::ports::Ports;

/// A refused access is found by the queue's selection in the cycle after the refusal, and fired in the
/// next but one.
const REFUSED: u64 = 4;
/// Address search of a store to the exception in the ROB.
const REPORT: u64 = 2;

impl Lsu {
    /// A load whose address is ready to be computed in cycle `ready`; also returns the cycle in which
    /// it issues. `head`: first cycle in which it is the oldest instruction.
    #[inline(always)]
    pub fn load(
        &mut self,
        fact: &Fact,
        executed: &Executed,
        ready: u64,
        head: u64,
        ports: &mut Ports,
        walker: &impl PageWalker,
    ) -> (u64, Answer) {
        self.counts.loads += 1;
        let access = &executed.mem;
        let issue = self.load_ports.issue(ports, ready, fact.ports);
        let first = issue + S0;
        if access.mmio {
            return (issue, self.device(first, head));
        }
        let mut s0 = self.translate(access, first, executed.translated, walker);
        let mut tea = TeaEvents::default();
        if s0 != first {
            tea = TeaEvents::ST_TLB;
        } else if self.banked && self.conflicts(access.pa, s0) {
            self.counts.bank_conflicts += 1;
            s0 += REFUSED;
        }
        // Integer loads that go through at once wake their dependents early, FP loads never do.
        let early = u64::from(s0 == first && fact.file == ring::INT);
        let mut failed = None;
        if let Some(found) = self.stores.search(access.pa, access.size, s0 + 1) {
            let covers = found.covers;
            if found.store.address > s0 + 1 {
                failed = Some(found.store.address + REPORT);
            } else {
                let store = found.store;
                let wanted = if covers {
                    store.data.saturating_sub(S0)
                } else {
                    store.gone + 1
                };
                self.counts.forwards += 1;
                let (s0, early) = if wanted <= s0 {
                    (s0, early)
                } else {
                    (self.retry(s0, wanted), 0)
                };
                let done = s0 + ANSWER;
                let class = if covers {
                    CycleClass::LoadL1
                } else {
                    CycleClass::Store
                };
                return (
                    issue,
                    Answer {
                        wake: done - early,
                        done,
                        class,
                        tea,
                        failed,
                    },
                );
            }
        }
        let line = access.pa >> LINE_BITS;
        let done = s0 + ANSWER;
        let Some((ready, level)) = self.l1d.access(line, s0 + 2, false, &mut self.lower) else {
            let class = CycleClass::LoadL1;
            return (
                issue,
                Answer {
                    wake: done - early,
                    done,
                    class,
                    tea,
                    failed,
                },
            );
        };
        let done = done.max(ready);
        let (class, missed) = class_of(level);
        (
            issue,
            Answer {
                wake: done,
                done,
                class,
                tea: tea | missed,
                failed,
            },
        )
    }

    /// S0 in which a load that waits for a store gets its data, not before `wanted`. One port retries the
    /// waiting loads in turn, each every third cycle, starting where the load before left off.
    #[cold]
    fn retry(&mut self, s0: u64, wanted: u64) -> u64 {
        let first = if s0 <= self.retried {
            self.retried + 1
        } else {
            s0
        };
        let s0 = first + wanted.saturating_sub(first).next_multiple_of(RETRY);
        self.retried = s0;
        s0
    }

    /// Two loads of a cycle conflict if they read different 16-byte rows of one bank.
    #[inline(always)]
    fn conflicts(&mut self, pa: u64, s0: u64) -> bool {
        let row = pa >> 4;
        let entry = &mut self.rows[s0 as usize % BANKS];
        if entry.0 != s0 {
            *entry = (s0, row);
            return false;
        }
        entry.1 & 1 == row & 1 && entry.1 != row
    }

    /// A device register is read when the load is the oldest instruction, one access at a time.
    #[cold]
    fn device(&mut self, s0: u64, head: u64) -> Answer {
        self.counts.mmio += 1;
        let start = s0
            .max(head + 1)
            .max(self.mmio_busy)
            .max(self.stores.empty());
        let done = start + self.mmio_latency;
        self.mmio_busy = done;
        let class = CycleClass::Device;
        Answer {
            wake: done,
            done,
            class,
            tea: TeaEvents::default(),
            failed: None,
        }
    }

    /// A load-reserved or the read of an atomic, alone in the machine, with its address in S0 = `s0`:
    /// the first cycle in which it can commit.
    pub fn atomic(&mut self, executed: &Executed, s0: u64, walker: &impl PageWalker) -> Answer {
        self.counts.loads += 1;
        let access = &executed.mem;
        if access.mmio {
            return self.device(s0, s0);
        }
        let walked = self.translate(access, s0, executed.translated, walker);
        let tlb = if walked == s0 {
            TeaEvents::default()
        } else {
            TeaEvents::ST_TLB
        };
        let done = walked + ANSWER;
        let line = access.pa >> LINE_BITS;
        let (done, tea) = match self.l1d.access(line, walked + 2, true, &mut self.lower) {
            None => (done, tlb),
            Some((ready, level)) => (done.max(ready), tlb | class_of(level).1),
        };
        Answer {
            wake: done,
            done,
            class: CycleClass::Serialize,
            tea,
            failed: None,
        }
    }

    /// A load or store that faults: the cycle in which the ROB has the exception.
    pub fn fault(&mut self, fact: &Fact, ready: u64, ports: &mut Ports) -> u64 {
        let issue = self.load_ports.issue(ports, ready, fact.ports);
        // Not modelled: the walk that found the fault.
        issue + S0 + ANSWER
    }
}
