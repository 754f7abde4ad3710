//! Simulated time that does not run ahead of the host's clock, for machines that the outside world talks to.

use std::time::{Duration, Instant};

use devices::Clock;

/// What simulated time may catch up after it fell behind: enough that sleeping too long evens out.
const CREDIT: Duration = Duration::from_millis(10);
/// The longest sleep. Time beyond it is let go.
const NAP_MAX: Duration = Duration::from_millis(100);

/// A guest that computes is left alone, also where translated code outruns its clock. One that sleeps would race
/// through its timers before the host, a person or a server, has had time to answer: it is made to wait.
#[derive(Debug)]
pub(crate) struct Pace {
    clock: Clock,
    /// A cycle of the guest that was at the host's time `since`.
    cycle: u64,
    since: Instant,
    asleep: Duration,
    /// Whether nobody is left to wait for.
    let_go: bool,
}

impl Pace {
    /// Starts the time now, with cycle 0.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, cycle: 0, since: Instant::now(), asleep: Duration::ZERO, let_go: false }
    }

    /// Lets simulated time run ahead of the host's from now on.
    pub(crate) fn let_go(&mut self) {
        self.let_go = true;
    }

    /// Returns how many cycles the machine may run until the next [`Self::wait`]: a millisecond, or any number once it is let
    /// go.
    pub(crate) fn slice(&self) -> u64 {
        if self.let_go {
            return u64::MAX;
        }
        (self.clock.clock_hz() / 1000).max(1)
    }

    /// Waits until the host has come to `cycle` too.
    pub(crate) fn wait(&mut self, cycle: u64) {
        if self.let_go {
            return;
        }
        let nanos = self.clock.nanos(cycle.saturating_sub(self.cycle));
        let (simulated, real) = (Duration::from_nanos(nanos), self.since.elapsed());
        let ahead = simulated.saturating_sub(real);
        let nap = ahead.min(NAP_MAX);
        if !nap.is_zero() {
            std::thread::sleep(nap);
            self.asleep += nap;
        }
        let behind = real.saturating_sub(simulated);
        if ahead > NAP_MAX || behind > CREDIT {
            self.cycle = cycle;
            self.since = Instant::now();
            if behind > CREDIT {
                self.since -= CREDIT;
            }
        }
    }

    /// Notes that the machine computed in `cycles` cycles: they need not be waited for.
    pub(crate) fn computed(&mut self, cycles: u64) {
        self.cycle = self.cycle.saturating_add(cycles);
    }

    /// Returns how long the machine was made to wait.
    pub(crate) fn asleep(&self) -> Duration {
        self.asleep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_runs_ahead_waits() {
        let mut pace = Pace::new(Clock::new(1_000_000, 1000));
        let start = Instant::now();
        for slice in 1..=50 {
            pace.wait(slice * pace.slice());
        }
        assert!(start.elapsed() >= Duration::from_millis(50));
        assert!(pace.asleep() <= start.elapsed());
    }

    #[test]
    fn time_that_fell_behind_is_not_made_up() {
        let mut pace = Pace::new(Clock::new(1_000_000, 1000));
        std::thread::sleep(Duration::from_millis(60));
        pace.wait(1000);
        let start = Instant::now();
        // 40 milliseconds, of which 10 are credit.
        for slice in 2..=41 {
            pace.wait(slice * pace.slice());
        }
        assert!(start.elapsed() >= Duration::from_millis(30));
    }

    #[test]
    fn what_was_computed_is_not_waited_for() {
        let mut pace = Pace::new(Clock::new(1_000_000, 1000));
        for slice in 1..=50 {
            pace.computed(pace.slice());
            pace.wait(slice * pace.slice());
        }
        assert_eq!(pace.asleep(), Duration::ZERO);
    }

    #[test]
    fn a_leap_does_not_stop_the_machine() {
        let mut pace = Pace::new(Clock::new(1_000_000, 1000));
        pace.wait(u64::MAX);
        assert_eq!(pace.asleep(), NAP_MAX);
    }
}
