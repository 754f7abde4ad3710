//! When samplers trigger.

use crate::Schedule;

/// The triggers of one [`Schedule`], on the scale of profiled cycles: those in the region of
/// interest in which the hart does not sleep, counted from 1. No trigger can fall on any other.
#[derive(Clone, Debug)]
pub struct SamplingClock {
    period: u64,
    next: u64,
    random: Option<Random>,
}

#[derive(Clone, Debug)]
struct Random {
    generator: SplitMix,
    /// Last cycle before the current period.
    base: u64,
}

impl SamplingClock {
    /// A clock before its first trigger. A period of 0 counts as 1.
    pub fn new(schedule: &Schedule) -> Self {
        let period = schedule.period.max(1);
        let next = if schedule.offset == 0 { period } else { schedule.offset };
        let Some(seed) = schedule.random else {
            return Self { period, next, random: None };
        };
        let random = Random { generator: SplitMix(seed), base: schedule.offset };
        let mut clock = Self { period, next: 0, random: Some(random) };
        clock.advance();
        clock
    }

    /// The cycle of the next trigger.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The trigger has fired: sets the one after it. That is always later, until the numbers end.
    pub fn advance(&mut self) {
        match &mut self.random {
            Some(random) => {
                let within = random.generator.next() % self.period;
                self.next = random.base.saturating_add(within).saturating_add(1);
                random.base = random.base.saturating_add(self.period);
            }
            None => self.next = self.next.saturating_add(self.period),
        }
    }
}

/// Steele, Lea and Flood's SplitMix64 (OOPSLA'14): small, and the same everywhere. The modulo above
/// favours small remainders by less than one in 2^40 for periods in use.
#[derive(Clone, Debug)]
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triggers(schedule: &Schedule, count: usize) -> Vec<u64> {
        let mut clock = SamplingClock::new(schedule);
        std::iter::repeat_with(|| (clock.next(), clock.advance()).0).take(count).collect()
    }

    #[test]
    fn periodic_triggers_end_their_periods() {
        assert_eq!(triggers(&Schedule::every(100), 3), [100, 200, 300]);
        assert_eq!(triggers(&Schedule { offset: 7, ..Schedule::every(100) }, 3), [7, 107, 207]);
        assert_eq!(triggers(&Schedule { offset: 250, ..Schedule::every(100) }, 2), [250, 350]);
        assert_eq!(triggers(&Schedule::every(0), 3), [1, 2, 3]);
        let far = Schedule { offset: 7, ..Schedule::every(u64::MAX) };
        assert_eq!(triggers(&far, 3), [7, u64::MAX, u64::MAX]);
    }

    #[test]
    fn random_triggers_fall_one_to_a_period_and_repeat_with_the_seed() {
        let schedule = Schedule::every(100).randomised(5);
        let found = triggers(&schedule, 1000);
        for (n, trigger) in found.iter().enumerate() {
            let start = 100 * n as u64;
            assert!((start + 1..=start + 100).contains(trigger));
        }
        assert_eq!(found, triggers(&schedule, 1000));
        assert_ne!(found, triggers(&Schedule::every(100).randomised(6), 1000));
        let mean = found.iter().map(|trigger| trigger % 100).sum::<u64>() / 1000;
        assert!((45..55).contains(&mean));
    }

    #[test]
    fn a_frequency_is_rounded_to_a_period() {
        assert_eq!(Schedule::frequency(4_000, 3_200_000_000).period, 800_000);
        assert_eq!(Schedule::frequency(3, 10).period, 3);
        assert_eq!(Schedule::frequency(100, 10).period, 1);
        assert_eq!(Schedule::frequency(0, 10).period, 10);
    }
}
