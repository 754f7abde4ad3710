//! Simulated time: core cycles since reset, and what `mtime` and the clocks derive from them.

/// The fixed ratio between core cycles, `mtime` ticks and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    clock_hz: u64,
    timebase_hz: u64,
    /// `clock_hz` divided by the greatest common divisor of both frequencies: `cycles` last as long as `ticks`.
    cycles: u64,
    /// `timebase_hz` divided by the same.
    ticks: u64,
}

impl Default for Clock {
    /// 3.2 GHz cores and a 10 MHz timebase.
    fn default() -> Self {
        Self::new(3_200_000_000, 10_000_000)
    }
}

impl Clock {
    /// A clock of the two frequencies in hertz. Zero counts as one.
    pub fn new(clock_hz: u64, timebase_hz: u64) -> Self {
        let (clock_hz, timebase_hz) = (clock_hz.max(1), timebase_hz.max(1));
        let common = greatest_common_divisor(clock_hz, timebase_hz);
        Self { clock_hz, timebase_hz, cycles: clock_hz / common, ticks: timebase_hz / common }
    }

    /// Core cycles per second.
    pub fn clock_hz(&self) -> u64 {
        self.clock_hz
    }

    /// `mtime` ticks per second.
    pub fn timebase_hz(&self) -> u64 {
        self.timebase_hz
    }

    /// Whole timebase ticks in `cycle` cycles.
    pub fn ticks(&self, cycle: u64) -> u64 {
        match cycle.checked_mul(self.ticks) {
            Some(product) => product / self.cycles,
            None => scale(cycle, self.ticks, self.cycles),
        }
    }

    /// First cycle at which `ticks` ticks have passed; saturates at `u64::MAX` ("never").
    pub fn cycle_of_ticks(&self, ticks: u64) -> u64 {
        let cycle = (u128::from(ticks) * u128::from(self.cycles)).div_ceil(u128::from(self.ticks));
        u64::try_from(cycle).unwrap_or(u64::MAX)
    }

    /// Whole nanoseconds in `cycle` cycles.
    pub fn nanos(&self, cycle: u64) -> u64 {
        scale(cycle, 1_000_000_000, self.clock_hz)
    }

    /// First cycle at which `nanos` nanoseconds have passed; saturates.
    pub fn cycle_of_nanos(&self, nanos: u64) -> u64 {
        let cycle = (u128::from(nanos) * u128::from(self.clock_hz)).div_ceil(1_000_000_000);
        u64::try_from(cycle).unwrap_or(u64::MAX)
    }
}

fn scale(value: u64, times: u64, over: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(times) / u128::from(over);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_cycles_are_inverse_at_the_edges() {
        for clock in [Clock::default(), Clock::new(1_000_000_007, 3_000_000), Clock::new(1, 7)] {
            for ticks in [0, 1, 2, 999, 12_345_678] {
                let cycle = clock.cycle_of_ticks(ticks);
                assert!(clock.ticks(cycle) >= ticks);
                assert!(cycle == 0 || clock.ticks(cycle - 1) < ticks, "{clock:?} {ticks}");
            }
        }
    }

    #[test]
    fn never_saturates() {
        assert_eq!(Clock::default().cycle_of_ticks(u64::MAX), u64::MAX);
        assert_eq!(Clock::default().ticks(u64::MAX), u64::MAX / 320);
    }

    #[test]
    fn nanoseconds() {
        let clock = Clock::default();
        assert_eq!(clock.nanos(3_200_000_000), 1_000_000_000);
        assert_eq!(clock.cycle_of_nanos(10), 32);
    }
}
