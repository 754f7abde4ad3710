//! What the loops do now and then: device events, interrupts, counters, sleep.

use devices::{Bus, PageEventKind, Ram};
use isa::{Interrupt, PerfEvent, TimingModel};
use sampling_units::ctr::TransferRecords;

use super::{Env, Hart, Mark, RunExit, after};
use crate::counters::Totals;
use crate::csr::{LCOFIP, STIP};

/// Where a hart's counters get their raw totals from.
struct HartTotals<'a, T> {
    cycles: u64,
    retired: u64,
    timing: &'a T,
}

impl<T: TimingModel> Totals for HartTotals<'_, T> {
    fn total(&self, event: PerfEvent) -> u64 {
        match event {
            PerfEvent::Cycles | PerfEvent::ReferenceCycles => self.cycles,
            PerfEvent::Instructions => self.retired,
            _ => self.timing.count(event),
        }
    }

    fn selected(&self, counter: usize) -> u64 {
        self.timing.selected(counter)
    }
}

impl Hart {
    /// The current cycle, as a serialising instruction sees it. `count` as in [`super::InstPosition`].
    pub(crate) fn now<T: TimingModel>(&self, env: &Env<'_, T>, count: u64) -> u64 {
        match (T::TIMED, T::PACED) {
            (true, _) => env.timing.now(),
            (false, true) => self.deadlines.pace.cycle_at(count),
            (false, false) => count,
        }
    }

    /// Where counters get their raw totals from.
    pub(crate) fn totals<'a, 'e, T: TimingModel>(
        &self,
        env: &'a Env<'e, T>,
        count: u64,
    ) -> impl Totals + use<'a, 'e, T> {
        let cycles = self.now(env, count);
        let retired = count.wrapping_sub(self.progress.not_retired);
        HartTotals { cycles, retired, timing: &*env.timing }
    }

    /// `mip` at `now`, from the lines as last seen.
    pub(crate) fn pending(&self, now: u64) -> u64 {
        let soft = self.arch.csrs.mip_soft;
        if self.arch.csrs.stce() {
            let timer = if now >= self.deadlines.stimer_at { STIP } else { 0 };
            self.arch.lines | soft & !STIP | timer
        } else {
            self.arch.lines | soft
        }
    }

    /// `mip` now, with the lines as they are now.
    pub(crate) fn mip<T: TimingModel>(&mut self, env: &mut Env<'_, T>, count: u64) -> u64 {
        env.bus.now = env.bus.now.max(self.now(env, count));
        self.arch.lines = env.bus.mip(self.id);
        self.pending(env.bus.now)
    }

    /// Asks for a check before the next instruction, if an interrupt that `mie` enables is pending.
    pub(crate) fn interrupts_may_be_enabled<T: TimingModel>(
        &mut self,
        env: &Env<'_, T>,
        count: u64,
    ) {
        let latest = if T::TIMED { env.timing.latest() } else { self.now(env, count) };
        if self.pending(latest) & self.arch.csrs.mie != 0
            && self.pending(self.now(env, count)) & self.arch.csrs.mie != 0
        {
            self.deadlines.afterwards(after::INTERRUPTS);
        }
    }

    /// Cycle at which `stimecmp` raises its interrupt.
    pub(crate) fn stimer_cycle(&self, bus: &Bus) -> u64 {
        if self.arch.csrs.stce() { bus.cycle_of_mtime(self.arch.csrs.stimecmp) } else { u64::MAX }
    }

    /// Brings programmable counters up to date, and requests the interrupt if one overflowed.
    pub(crate) fn sync_counters<T: TimingModel>(&mut self, env: &Env<'_, T>, count: u64) {
        if !self.arch.counters.any_enabled() {
            self.deadlines.counters_due = u64::MAX;
            self.sampling.overflows_at = u64::MAX;
            return;
        }
        let room = match self.arch.counters.any_recorded() {
            true => self.room_for_samples(),
            false => 0,
        };
        let totals = self.totals(env, count);
        // Attributed overflows wait until the instruction that may have caused them has left the ROB.
        let waits = self.sampling.fetched && self.sampling.attributes_overflows;
        let overflows = self.arch.counters.sync(&totals, room, waits);
        if overflows.interrupts != 0 {
            self.arch.csrs.mip_soft |= LCOFIP;
            self.attribute_imprecisely(overflows.interrupts);
        }
        if !overflows.recorded.is_empty() {
            self.expect_samples(&overflows.recorded);
        }
        self.deadlines.counters_due = self.arch.counters.deadline(self.now(env, count));
        if !waits {
            self.expect_overflow(count);
        }
    }

    /// Continues the counters from another timing model's totals.
    pub(super) fn rebase_counters<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        was_timed: bool,
    ) {
        if T::TIMED && !was_timed {
            for (counter, selection) in self.arch.counters.followed() {
                env.timing.select(counter, selection);
            }
            env.timing.observe(self.sampling.units.samplers.is_active());
            self.resume_sampling();
            self.deadlines.due = 0;
        }
        let totals = self.totals(env, self.progress.count);
        self.arch.counters.rebase(&totals);
        drop(totals);
        self.watch_counters(env, self.progress.count);
    }

    /// Runs what is due at `now` and gives the interrupt to take, if any. Sets when the next thing
    /// is due.
    pub(super) fn check<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        now: u64,
    ) -> Option<Interrupt> {
        // A device access may have been later than an instruction after it decodes.
        let now = now.max(env.bus.now);
        env.bus.advance(now);
        env.pass_dma_writes();
        if env.bus.irq_at.get() <= now {
            env.bus.irq_at.set(u64::MAX);
        }
        self.apply_page_events(&mut env.bus.ram);
        self.arch.lines = env.bus.mip(self.id);
        self.sync_counters(env, self.progress.count);
        if self.sampling.awaits_samples {
            self.record_samples(env, self.arch.pc, self.progress.count);
        }
        if now >= self.sampling.due {
            self.sync_samples(env, self.progress.count);
        }
        if env.bus.exit.is_some() || env.bus.pause {
            self.deadlines.afterwards(after::DEVICE);
        }
        self.deadlines.due = self.next_due(env.bus);
        self.choose(self.pending(now))
    }

    /// When something is due next, if nothing is now.
    fn next_due(&self, bus: &Bus) -> u64 {
        let stimer =
            if self.deadlines.stimer_at > bus.now { self.deadlines.stimer_at } else { u64::MAX };
        bus.next_event().min(stimer).min(self.deadlines.counters_due).min(self.sampling.due)
    }

    /// Called after an access to a device register: brings `due` forward to the device's next event, or to now if an enabled
    /// interrupt is pending. Only then is the timing model asked for the cycle, which can cost it much.
    fn heed_device<T: TimingModel>(&mut self, env: &mut Env<'_, T>) {
        env.bus.advance(env.bus.now);
        env.pass_dma_writes();
        self.arch.lines = env.bus.mip(self.id);
        let due = if self.pending(env.bus.now) & self.arch.csrs.mie == 0 {
            self.next_due(env.bus)
        } else {
            self.now(env, self.progress.count)
        };
        self.deadlines.due = self.deadlines.due.min(due);
    }

    /// Carries out side effects that the last instruction or trap deferred (`self.after`): privilege, TLB flush, devices.
    pub(super) fn settle<T: TimingModel>(&mut self, env: &mut Env<'_, T>) -> Option<RunExit> {
        let after = std::mem::take(&mut self.deadlines.after);
        if after & after::FREEZE != 0 {
            // The trap has passed the records, then.
            self.now(env, self.progress.count);
            self.sampling.units.transfer_records.with(TransferRecords::freeze);
        }
        if after & after::PRIVILEGE != 0 {
            env.timing.privilege(self.arch.privilege);
            if self.arch.counters.filtered() {
                // The instruction that changed it has retired: a return counts where it came from (Smcntrpmf 1.0).
                self.sync_counters(env, self.progress.count);
                let totals = self.totals(env, self.progress.count);
                self.arch.counters.set_privilege(self.arch.privilege, &totals);
                drop(totals);
                self.watch_counters(env, self.progress.count);
                self.deadlines.due = 0;
            }
        }
        if after & after::TRANSLATION != 0 {
            env.timing.flush_tlb();
        }
        if after & after::DEVICE != 0 {
            self.apply_page_events(&mut env.bus.ram);
            self.adopt_guest_tag();
            self.deadlines.stimer_at = self.stimer_cycle(env.bus);
            self.heed_device(env);
            if let Some(exit) = env.bus.exit {
                return Some(RunExit::Exit(exit));
            }
            if std::mem::take(&mut env.bus.pause) {
                // What else there was to do is done in the next run.
                self.deadlines.afterwards(after & after::WAIT);
                return Some(RunExit::Paused);
            }
        }
        if after & after::INTERRUPTS != 0 {
            self.deadlines.due = 0;
        }
        if after & after::REGION != 0
            && let Some(mark) = Mark::of(self.deadlines.last_mark)
        {
            return Some(RunExit::Region(mark));
        }
        if after & after::STUCK != 0
            && let Some(stuck) = self.take_stuck()
        {
            return Some(RunExit::Stuck(stuck));
        }
        if after & after::DEBUG != 0
            && let Some(exit) = self.debug_exit()
        {
            // What else there was to do is done in the next run.
            self.deadlines.afterwards(after & after::WAIT);
            return Some(exit);
        }
        if after & after::WAIT != 0 {
            return self.wait(env);
        }
        None
    }

    /// Sleeps until an enabled interrupt is pending, whether or not it will be taken.
    fn wait<T: TimingModel>(&mut self, env: &mut Env<'_, T>) -> Option<RunExit> {
        self.arch.waiting = true;
        let mut now = self.now(env, self.progress.count);
        loop {
            // Interrupts are not taken here: the next instruction does, after `wfi`.
            self.check(env, now);
            if self.pending(env.bus.now) & self.arch.csrs.mie != 0 {
                self.arch.waiting = false;
                self.resume_sampling();
                self.deadlines.due = 0;
                return None;
            }
            if let Some(exit) = env.bus.exit {
                return Some(RunExit::Exit(exit));
            }
            let wake = self.deadlines.due.min(env.bus.irq_at.get());
            if wake == u64::MAX && self.deadlines.stop_cycle == u64::MAX {
                return Some(RunExit::Idle);
            }
            let until = wake.min(self.deadlines.stop_cycle);
            if until > now {
                if T::TIMED {
                    env.timing.idle_until(until);
                } else {
                    let slept = until - now;
                    self.progress.sleep(slept);
                    if T::PACED {
                        self.deadlines.pace = self.deadlines.pace.from(self.progress.count, until);
                    }
                    self.deadlines.stop_count = self.deadlines.stop_count.saturating_add(slept);
                }
                now = until;
            }
            if wake > self.deadlines.stop_cycle {
                return Some(RunExit::Limit);
            }
        }
    }

    /// Applies the page events that others logged: drops code that was overwritten, and has accesses take the slow path that
    /// have to.
    pub(super) fn apply_page_events(&mut self, ram: &mut Ram) {
        let end = ram.page_event_count();
        if self.decoded.page_events_seen == end {
            return;
        }
        match ram.page_events_since(self.decoded.page_events_seen) {
            Some(events) => {
                for event in events.iter().filter(|event| event.by != Some(self.id)) {
                    match event.kind {
                        PageEventKind::Overwritten { from, to } => {
                            self.decoded.code.overwritten(event.page, from, to);
                        }
                        PageEventKind::SlowStores => self.host.flush_stores_to(event.page << 12),
                        PageEventKind::SlowAccesses => {
                            self.host.slow_accesses_to(event.page << 12);
                        }
                    }
                }
            }
            None => {
                self.decoded.code.all_overwritten();
                self.host.flush_loads();
                self.host.flush_stores();
            }
        }
        self.decoded.page_events_seen = end;
    }
}
