//! Issue ports: which cycle each one is taken in.

/// Cycles that are remembered. Bookings further apart than this forget each other.
const SPAN: usize = 1024;
/// Bits of an entry that name ports; the rest tag the cycle.
const PORT_BITS: u32 = 12;
const PORT_MASK: u32 = (1 << PORT_BITS) - 1;
/// The cycle's bits above the index, as many as fit beside the ports.
const CYCLE_SHIFT: u32 = SPAN.trailing_zeros();

/// A reservation table of ports by cycles.
///
/// Instructions book in program order, each the first cycle at or after it is ready: that is the oldest
/// ready first, as in BOOM's collapsing queues. Of the ports that are free, the lowest is taken.
pub(crate) struct Ports {
    taken: [u32; SPAN],
}

impl Ports {
    /// All free.
    pub fn new() -> Self {
        Self { taken: [0; SPAN] }
    }

    /// Books one of the `allowed` ports in the first cycle ≥ `ready` in which one is free; the cycle and
    /// the port's bit.
    #[inline(always)]
    pub fn book(&mut self, ready: u64, allowed: u32) -> (u64, u32) {
        let mut cycle = ready;
        loop {
            let tag = ((cycle >> CYCLE_SHIFT) as u32) << PORT_BITS;
            let entry = &mut self.taken[cycle as usize % SPAN];
            let current = if *entry & !PORT_MASK == tag {
                *entry
            } else {
                tag
            };
            let free = allowed & !current;
            if free != 0 {
                let port = free & free.wrapping_neg();
                *entry = current | port;
                return (cycle, port);
            }
            cycle += 1;
        }
    }

    /// Takes `ports` in `cycle`, whether they are free or not.
    #[inline(always)]
    pub fn mark(&mut self, cycle: u64, ports: u32) {
        let tag = ((cycle >> CYCLE_SHIFT) as u32) << PORT_BITS;
        let entry = &mut self.taken[cycle as usize % SPAN];
        *entry = if *entry & !PORT_MASK == tag {
            *entry | ports
        } else {
            tag | ports
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_free_port_then_next_cycle() {
        let mut ports = Ports::new();
        assert_eq!(ports.book(7, 0b11), (7, 0b01));
        assert_eq!(ports.book(7, 0b11), (7, 0b10));
        assert_eq!(ports.book(7, 0b11), (8, 0b01));
        assert_eq!(ports.book(7, 0b100), (7, 0b100));
    }

    #[test]
    fn a_younger_instruction_fills_an_earlier_hole() {
        let mut ports = Ports::new();
        assert_eq!(ports.book(100, 1), (100, 1));
        assert_eq!(ports.book(90, 1), (90, 1));
    }

    #[test]
    fn old_bookings_are_forgotten() {
        let mut ports = Ports::new();
        assert_eq!(ports.book(5, 1), (5, 1));
        assert_eq!(ports.book(5 + SPAN as u64, 1), (5 + SPAN as u64, 1));
    }
}
