//! Several harts in one simulated time: each in turn executes a slice, so that a run is the same every time.

use isa::Untimed;

use super::{Env, Hart, Limit, RunExit};
use crate::Bus;

/// Cycles of a slice. Harts are at most that far apart, and hear of each other's interrupts and changes to code so late;
/// `time` never goes back. Long enough for translated code, which stays out of the last 2,048 instructions of a run.
const SLICE: u64 = 8192;

/// Executes without timing, as [`Hart::run`] with one hart does, until the limit is reached or the guest ends the run. The
/// limit's instructions are counted by cycle: a hart executes at most one in each.
///
/// Store-conditionals compare the value that was loaded, as QEMU's do: they succeed if another hart wrote the same
/// value again meanwhile.
pub fn run_together(harts: &mut [&mut Hart], bus: &mut Bus, limit: Limit) -> RunExit {
    let Some(start) = harts.iter().map(|hart| hart.cycle()).min() else {
        return RunExit::Limit;
    };
    let end = limit.cycle.min(start.saturating_add(limit.instructions));
    bus.ram.share();
    let timing = &mut Untimed;
    let env = &mut Env { bus, timing };
    for hart in harts.iter_mut() {
        hart.enter(env);
    }
    loop {
        // The one that is furthest behind goes on; of several, the first.
        let Some(hart) = harts.iter_mut().min_by_key(|hart| hart.cycle()) else {
            return RunExit::Limit;
        };
        let now = hart.cycle();
        if now >= end {
            return RunExit::Limit;
        }
        let until = Limit::cycle(end.min(now + SLICE));
        let exit = hart.go_on(env, until);
        // What one hart has seen of the time is past for all.
        env.bus.now = env.bus.now.max(hart.cycle());
        let from = hart.id();
        for number in env.bus.ram.take_code_news() {
            for hart in harts.iter_mut().filter(|hart| hart.id() != from) {
                hart.hear_of_code(number);
            }
        }
        match exit {
            RunExit::Limit => {}
            exit => return exit,
        }
        if harts.iter().all(|hart| hart.waits(env.bus)) {
            let wake = harts.iter().map(|hart| hart.due).min();
            let wake = wake.unwrap_or(u64::MAX).min(env.bus.irq_at.get());
            if wake == u64::MAX && end == u64::MAX {
                return RunExit::Idle;
            }
            // Nobody can do anything before.
            let wake = wake.min(end);
            for hart in harts.iter_mut() {
                hart.sleep_until(wake);
            }
        }
    }
}

impl Hart {
    /// It waits, and what happened on the bus since it began to does not wake it.
    fn waits(&self, bus: &Bus) -> bool {
        self.waiting && (bus.mip(self.id) | self.csrs.mip_soft) & self.csrs.mie == 0
    }

    /// Another hart stored to a page with code, or decoded code there.
    fn hear_of_code(&mut self, number: u64) {
        self.code.overwritten(number);
        let host = (number << 12).wrapping_sub(self.host_to_pa) as *mut u8;
        self.store_tlb.flush_host(host);
    }

    /// Lets cycles pass in which it waits.
    fn sleep_until(&mut self, cycle: u64) {
        let slept = cycle.saturating_sub(self.cycle);
        self.count += slept;
        self.not_retired = self.not_retired.wrapping_add(slept);
        self.cycle += slept;
    }
}
