//! A resource that serves one request at a time.

/// The last busy period of a resource such as a bus, a bank or a port, and the gap before it.
///
/// Requests come in program order, not in order of time: one that fits into the gap is served there, as
/// if it had come first. Only one gap is remembered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    gap: u64,
    start: u64,
    end: u64,
}

snapshot::snapshot!(Slot { gap, start, end });

impl Slot {
    /// Serves a request that takes `cycles`; returns when it starts.
    #[inline]
    pub(super) fn serve(&mut self, cycle: u64, cycles: u64) -> u64 {
        if cycle >= self.end {
            *self = Self { gap: self.end, start: cycle, end: cycle + cycles };
            return cycle;
        }
        let early = cycle.max(self.gap);
        if early + cycles <= self.start {
            self.gap = early + cycles;
            return early;
        }
        let start = self.end;
        self.end += cycles;
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_unless_it_fits_before() {
        let mut slot = Slot::default();
        assert_eq!(slot.serve(100, 10), 100);
        assert_eq!(slot.serve(105, 10), 110);
        assert_eq!(slot.serve(50, 10), 50);
        assert_eq!(slot.serve(55, 10), 60);
        assert_eq!(slot.serve(95, 10), 120);
        assert_eq!(slot.serve(105, 10), 130);
    }
}
