//! Several harts in one simulated time: the harts execute in turns, so that a run is the same every time.

use devices::Bus;
use isa::{TimingModel, Untimed};

use super::{Env, Hart, Limit, RunExit};

/// Length in cycles of a turn without timing. Two harts are at most one turn apart, so that a hart sees the interrupts and code changes of another
/// hart at most that much later; `time` never goes back. A turn has to be long, since translated code does not execute in the last 2,048 instructions
/// of a turn.
const UNTIMED_TURN: u64 = 8192;

/// Cycles by which contended accesses and those to devices may be out of order: a hart goes on for at least so much from where no other hart is behind it.
const ORDER_SLACK: u64 = 16;

/// Cycles by which a hart under a timing model may go ahead of the others as long as it accesses no contended line and no device, beside a run of 128
/// instructions. Interrupts of other harts, and what a hart writes to a line that was not contended before, come to others at most that much too late or
/// too early.
const MOST_AHEAD: u64 = 512;

/// How far from the order of simulated time harts may execute under timing models, in cycles.
#[derive(Clone, Copy)]
struct Order {
    /// See [`ORDER_SLACK`].
    slack: u64,
    /// See [`MOST_AHEAD`].
    most_ahead: u64,
}

impl Order {
    const NEAR: Self = Self { slack: ORDER_SLACK, most_ahead: MOST_AHEAD };
    /// The hart that is furthest behind executes an instruction.
    const EACH_INSTRUCTION: Self = Self { slack: 1, most_ahead: 1 };
}

/// Length in cycles of a turn of harts that execute without timing at the pace of a model: short enough that harts hand over locks about as they do
/// under timing models.
const PACED_TURN: u64 = 64;

/// Executes several harts in turns without timing, as [`Hart::run`] executes one, until the limit is reached or the guest ends the run. The limit's
/// instructions are counted in cycles, since a hart executes at most one instruction in a cycle.
pub fn run_together(harts: &mut [&mut Hart], bus: &mut Bus, limit: Limit) -> RunExit {
    let exit = take_turns(harts, bus, limit);
    for hart in harts {
        hart.heed_lost_reservation(&mut bus.ram);
    }
    exit
}

fn take_turns(harts: &mut [&mut Hart], bus: &mut Bus, limit: Limit) -> RunExit {
    let going = harts.iter().filter(|hart| !hart.is_held());
    let Some(start) = going.map(|hart| hart.cycle()).min() else {
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
        // The hart that is furthest behind goes on; of several, the first.
        let going = harts.iter_mut().filter(|hart| !hart.is_held());
        let Some(hart) = going.min_by_key(|hart| hart.cycle()) else {
            return RunExit::Limit;
        };
        let now = hart.cycle();
        if now >= end {
            return RunExit::Limit;
        }
        let until = Limit::cycle(end.min(now + UNTIMED_TURN));
        let exit = hart.go_on(env, until);
        // What one hart has seen of the time is past for all.
        env.bus.now = env.bus.now.max(hart.cycle());
        match exit {
            RunExit::Limit => {}
            exit => return exit,
        }
        if harts.iter().all(|hart| hart.is_held() || hart.waits(env.bus)) {
            let wake = harts.iter().map(|hart| hart.deadlines.due).min();
            let wake = wake.unwrap_or(u64::MAX).min(env.bus.irq_at.get());
            if wake == u64::MAX && end == u64::MAX {
                return RunExit::Idle;
            }
            // No hart can do anything before.
            let wake = wake.min(end);
            for hart in harts.iter_mut().filter(|hart| !hart.is_held()) {
                hart.sleep_until(wake);
            }
        }
    }
}

/// Executes several harts, each with its timing model, in turns. The hart that has reached the lowest cycle has the next turn. A hart asleep has its
/// turn when something wakes it.
///
/// Accesses to devices and to lines that harts contend for are in the order of simulated time, to within a few cycles and instructions ([`ORDER_SLACK`]): a hart's turn ends
/// before one for which another hart is behind. With what nobody else is known to see, a hart goes ahead of the others ([`MOST_AHEAD`]).
///
/// The limit is looked at between turns, so that where a run stops does not change what harts see of each other; its
/// instructions are those of all harts together.
pub fn run_timed_together<T: TimingModel>(
    harts: &mut [(&mut Hart, &mut T)],
    bus: &mut Bus,
    limit: Limit,
) -> RunExit {
    let exit = take_timed_turns(harts, bus, limit);
    for (hart, _) in harts {
        hart.heed_lost_reservation(&mut bus.ram);
    }
    exit
}

fn take_timed_turns<T: TimingModel>(
    harts: &mut [(&mut Hart, &mut T)],
    bus: &mut Bus,
    limit: Limit,
) -> RunExit {
    bus.ram.share();
    bus.ram.order_contended_accesses(harts.len());
    for (hart, timing) in harts.iter_mut() {
        hart.turns.in_turns = true;
        hart.enter(&mut Env { bus, timing: *timing });
    }
    let each = harts.iter().any(|(hart, _)| hart.turns.order_each);
    let Order { slack, most_ahead } = if each { Order::EACH_INSTRUCTION } else { Order::NEAR };
    let executed = |harts: &[(&mut Hart, &mut T)]| -> u64 {
        let counts = harts.iter().map(|(hart, _)| hart.progress.count);
        counts.fold(0, u64::wrapping_add)
    };
    let start = executed(harts);
    loop {
        let irq_at = bus.irq_at.get();
        let Some(next) = (0..harts.len()).min_by_key(|&n| harts[n].0.turn(irq_at)) else {
            return RunExit::Limit;
        };
        let now = harts[next].0.turn(irq_at);
        let others = (0..harts.len()).filter(|&n| n != next).map(|n| harts[n].0.turn(irq_at));
        let others = others.min().unwrap_or(u64::MAX);
        if now == u64::MAX && limit.cycle == u64::MAX {
            return RunExit::Idle;
        }
        if now >= limit.cycle || executed(harts).wrapping_sub(start) >= limit.instructions {
            // The timing model of a sleeping hart learns of the time only when the hart wakes, so that a stop here changes nothing.
            for (hart, _) in harts.iter_mut().filter(|(hart, _)| hart.arch.waiting) {
                hart.progress.cycle = hart.progress.cycle.max(now.min(limit.cycle));
            }
            return RunExit::Limit;
        }
        let (hart, timing) = &mut harts[next];
        timing.other_harts_executed();
        bus.ram.pass(now);
        let in_order_until =
            others.clamp(now.saturating_add(slack), now.saturating_add(most_ahead));
        (hart.turns.in_order_until, hart.turns.next_is_in_order) = (in_order_until, true);
        // A hart that all others are far ahead of, or asleep, has enough to do that is in order.
        let is_far_behind = in_order_until == now.saturating_add(most_ahead);
        let ahead = if each || is_far_behind { 0 } else { most_ahead };
        let until = in_order_until.saturating_add(ahead);
        // What a device does next, it does in order, too.
        let until = Limit::cycle(until.min(bus.next_event().max(in_order_until)));
        let exit = hart.go_on(&mut Env { bus, timing: *timing }, until);
        if exit != RunExit::Limit {
            return exit;
        }
        for (hart, timing) in harts.iter_mut() {
            if hart.arch.waiting && !hart.waits(bus) {
                hart.sleeps_until(*timing, bus.now);
                hart.arch.waiting = false;
                hart.resume_sampling();
            }
        }
    }
}

/// Executes harts without timing, each at the pace that its model says ([`TimingModel::PACED`]), in turns that end in multiples of a fixed number of cycles.
/// Returns, beside why it came back, in how many cycles all harts slept.
///
/// The limit is looked at between turns, as by [`run_timed_together`], so that where a run stops does not change what harts see of each other; its
/// instructions are those of all harts together.
pub fn run_paced_together<T: TimingModel>(
    harts: &mut [(&mut Hart, &mut T)],
    bus: &mut Bus,
    limit: Limit,
) -> (RunExit, u64) {
    bus.ram.share();
    for (hart, timing) in harts.iter_mut() {
        hart.enter(&mut Env { bus, timing: *timing });
    }
    let mut slept = 0;
    let exit = take_paced_turns(harts, bus, limit, &mut slept);
    for (hart, _) in harts {
        hart.heed_lost_reservation(&mut bus.ram);
    }
    (exit, slept)
}

fn take_paced_turns<T: TimingModel>(
    harts: &mut [(&mut Hart, &mut T)],
    bus: &mut Bus,
    limit: Limit,
    slept: &mut u64,
) -> RunExit {
    let retired = |harts: &[(&mut Hart, &mut T)]| -> u64 {
        harts.iter().map(|(hart, _)| hart.progress.retired()).sum()
    };
    let start = retired(harts);
    loop {
        // The hart that is furthest behind goes on; of several, the first.
        let going = (0..harts.len()).filter(|&n| !harts[n].0.is_held());
        let Some(next) = going.min_by_key(|&n| harts[n].0.cycle()) else {
            return RunExit::Limit;
        };
        let now = harts[next].0.cycle();
        if now >= limit.cycle || retired(harts) - start >= limit.instructions {
            return RunExit::Limit;
        }
        let (hart, timing) = &mut harts[next];
        timing.other_harts_executed();
        let until = Limit::cycle((now / PACED_TURN + 1) * PACED_TURN);
        let exit = hart.go_on(&mut Env { bus, timing: *timing }, until);
        hart.pass_paced(timing.take_delay());
        // What one hart has seen of the time is past for all.
        bus.now = bus.now.max(hart.cycle());
        if exit != RunExit::Limit {
            return exit;
        }
        if harts.iter().all(|(hart, _)| hart.is_held() || hart.waits(bus)) {
            let wake = harts.iter().map(|(hart, _)| hart.deadlines.due).min();
            let wake = wake.unwrap_or(u64::MAX).min(bus.irq_at.get());
            if wake == u64::MAX && limit.cycle == u64::MAX {
                return RunExit::Idle;
            }
            // No hart can do anything before.
            let wake = wake.min(limit.cycle);
            let reached = harts.iter().map(|(hart, _)| hart.cycle()).max().unwrap_or(wake);
            *slept += wake.saturating_sub(reached);
            for (hart, _) in harts.iter_mut().filter(|(hart, _)| !hart.is_held()) {
                hart.pass_paced(wake.saturating_sub(hart.cycle()));
            }
        }
    }
}

impl Hart {
    /// Sets whether, of several harts under timing models, the one that is furthest behind executes a single instruction before it is looked again which one
    /// that is, whatever the instruction accesses. Cycles of other turns are judged by those of such turns, which take many times as long.
    pub fn order_each_instruction(&mut self, on: bool) {
        self.turns.order_each = on;
    }

    /// Lets the timing model of a sleeping hart sleep at least up to `cycle`, as if the hart had been looked at then; does nothing to a hart that is
    /// awake. Only between runs under timing models.
    pub fn pass_sleep<T: TimingModel>(&mut self, timing: &mut T, cycle: u64) {
        if self.arch.waiting && self.progress.timed && !self.is_held() {
            self.sleeps_until(timing, cycle);
        }
    }

    /// Returns the cycle of the hart's next turn under its timing model; `u64::MAX` if the debugger holds the hart, or it sleeps and nothing that is
    /// scheduled wakes it.
    fn turn(&self, irq_at: u64) -> u64 {
        if self.is_held() {
            u64::MAX
        } else if self.arch.waiting {
            self.turns.reached.max(self.deadlines.due.min(irq_at))
        } else {
            self.turns.reached
        }
    }

    /// Lets the hart, which sleeps in `wfi`, and its timing model sleep until `cycle`.
    fn sleeps_until<T: TimingModel>(&mut self, timing: &mut T, cycle: u64) {
        timing.idle_until(cycle);
        self.progress.cycle = timing.now();
        self.turns.reached = self.turns.reached.max(cycle);
    }

    /// Returns whether the hart sleeps in `wfi` and no enabled interrupt is pending that wakes it.
    fn waits(&self, bus: &Bus) -> bool {
        self.arch.waiting && (bus.mip(self.id) | self.arch.csrs.mip_soft) & self.arch.csrs.mie == 0
    }

    /// Lets `cycles` cycles pass in which the hart executes nothing, between two of its turns at a pace.
    fn pass_paced(&mut self, cycles: u64) {
        if cycles == 0 {
            return;
        }
        let count = self.progress.count;
        self.sleep_until(self.progress.cycle.saturating_add(cycles));
        let Self { deadlines, progress, .. } = self;
        deadlines.pace = deadlines.pace.renamed(count, progress.count).later(cycles);
    }

    /// Lets the hart sleep until `cycle`, between two of its turns without timing.
    fn sleep_until(&mut self, cycle: u64) {
        let slept = cycle.saturating_sub(self.progress.cycle);
        self.progress.sleep(slept);
        self.progress.cycle += slept;
    }
}
