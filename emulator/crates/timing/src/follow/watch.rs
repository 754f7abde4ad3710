//! Cycles that fulfil a condition.

use isa::Condition;

/// Counts cycles by how often something occurs in each. Cycles are told in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    condition: Condition,
    /// First cycle that is not closed: more can still occur in it.
    next: u64,
    /// Occurrences in cycle `next` until now.
    pending: u32,
    /// The cycle before `next` fulfils the condition.
    met: bool,
    /// Cycles counted.
    pub total: u64,
}

snapshot::snapshot!(Watch { condition, next, pending, met, total });

impl Watch {
    /// Returns a watch that counts from cycle `next` on.
    pub(super) fn new(condition: Condition, next: u64) -> Self {
        Self { condition, next, pending: 0, met: false, total: 0 }
    }

    /// Adds `value` occurrences in a cycle.
    #[inline]
    pub(super) fn add(&mut self, cycle: u64, value: u32) {
        self.close(cycle);
        self.more(value);
    }

    /// Adds `value` occurrences in the last cycle that the watch was told of.
    #[inline]
    pub(super) fn more(&mut self, value: u32) {
        self.pending += value;
    }

    /// Adds `value` occurrences in each cycle from `from` to before `to`; nothing else occurs in them.
    #[inline]
    pub(super) fn span(&mut self, from: u64, to: u64, value: u32) {
        self.close(from);
        if to > self.next {
            self.count(to - self.next, value + self.pending);
            self.pending = 0;
            self.next = to;
        }
    }

    /// Closes the cycles before `cycle`, in which nothing more occurs.
    #[inline]
    pub(super) fn close(&mut self, cycle: u64) {
        if cycle > self.next {
            let pending = std::mem::take(&mut self.pending);
            self.count(1, pending);
            if cycle > self.next + 1 {
                self.count(cycle - self.next - 1, 0);
            }
            self.next = cycle;
        }
    }

    /// Leaves out the cycles before `cycle` that are not closed.
    pub(super) fn skip(&mut self, cycle: u64) {
        self.next = self.next.max(cycle);
    }

    /// Counts `cycles` cycles, each with `value` occurrences.
    #[inline]
    fn count(&mut self, cycles: u64, value: u32) {
        let met = (value >= u32::from(self.condition.threshold)) != self.condition.invert;
        let counted = match self.condition.edge {
            false => cycles,
            true => u64::from(!self.met),
        };
        self.total += if met { counted } else { 0 };
        self.met = met;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the cycles counted of cycles 10 to 19, with 1, 3, 0, 0, 2, 2, 2, 0, 4 and 0 occurrences.
    fn counted(threshold: u8, invert: bool, edge: bool) -> u64 {
        let condition = Condition { threshold, invert, edge };
        let mut watch = Watch::new(condition, 10);
        watch.add(10, 1);
        watch.add(11, 2);
        watch.add(11, 1);
        watch.span(14, 17, 2);
        watch.add(18, 4);
        watch.close(20);
        watch.total
    }

    #[test]
    fn cycles_of_a_threshold() {
        let each = [1, 3, 0, 0, 2, 2, 2, 0, 4, 0];
        for threshold in 1..6 {
            let at_least = |&value: &u8| value >= threshold;
            let met = each.iter().filter(|&value| at_least(value)).count() as u64;
            assert_eq!(counted(threshold, false, false), met);
            assert_eq!(counted(threshold, true, false), 10 - met);
        }
        assert_eq!(counted(1, false, true), 3);
        assert_eq!(counted(1, true, true), 3);
        assert_eq!(counted(3, false, true), 2);
        assert_eq!(counted(5, true, true), 1);
    }
}
