//! The return address stack (`ifu/bpd/ras.scala`). It is repaired after a misprediction, so that in
//! program order it is exact until it overflows.

/// Limit of entries.
const MAX: usize = 64;

/// A circular stack.
pub(crate) struct Returns {
    addresses: [u64; MAX],
    top: usize,
    /// Addresses that were pushed and neither popped nor lost.
    depth: usize,
    size: usize,
}

snapshot::snapshot!(Returns { addresses, top, depth } keeps { size });

impl Returns {
    pub(crate) fn new(size: u32) -> Self {
        Self { addresses: [0; MAX], top: 0, depth: 0, size: (size as usize).clamp(1, MAX) }
    }

    /// Pushes the return address of a call; returns true if the stack was full: the oldest address is lost.
    pub(crate) fn call(&mut self, address: u64) -> bool {
        let full = self.depth == self.size;
        self.depth += usize::from(!full);
        self.top = (self.top + 1) % self.size;
        self.addresses[self.top] = address;
        full
    }

    /// Pops the predicted address; returns it, and whether the stack was empty.
    pub(crate) fn ret(&mut self) -> (u64, bool) {
        let empty = self.depth == 0;
        self.depth -= usize::from(!empty);
        let address = self.addresses[self.top];
        self.top = (self.top + self.size - 1) % self.size;
        (address, empty)
    }
}

/// What the repair of the stack puts back.
#[derive(Clone, Copy)]
pub(crate) struct SavedReturns {
    top: usize,
    depth: usize,
    /// The entry on top as the packet of the misprediction found it.
    entry: usize,
    address: u64,
}

impl Returns {
    /// Returns what a repair puts back. The mispredicted instruction has pushed so many entries.
    pub(crate) fn saved(&self, pushed: isize) -> SavedReturns {
        let Self { addresses, top, depth, size } = self;
        let entry = top.wrapping_add_signed(-pushed).wrapping_add(*size) % size;
        SavedReturns { top: *top, depth: *depth, entry, address: addresses[entry] }
    }

    /// Repairs the stack after a wrong path: the entry on top, and which one that is. Others stay as the wrong path wrote them.
    pub(crate) fn repair(&mut self, saved: SavedReturns) {
        (self.top, self.depth) = (saved.top, saved.depth);
        self.addresses[saved.entry] = saved.address;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_puts_back_the_entry_on_top_alone() {
        let mut returns = Returns::new(8);
        for address in [1, 2, 3] {
            returns.call(address);
        }
        let saved = returns.saved(0);
        // The wrong path returns twice and calls twice.
        assert_eq!([returns.ret(), returns.ret()], [(3, false), (2, false)]);
        returns.call(8);
        returns.call(9);
        returns.repair(saved);
        let popped = [returns.ret(), returns.ret(), returns.ret()];
        assert_eq!(popped, [(3, false), (8, false), (1, false)]);
    }

    #[test]
    fn a_repair_puts_back_what_the_mispredicted_return_or_call_found() {
        let mut returns = Returns::new(8);
        returns.call(1);
        assert_eq!(returns.ret(), (1, false));
        let saved = returns.saved(-1);
        returns.call(9);
        returns.repair(saved);
        assert_eq!((returns.top, returns.depth, returns.addresses[1]), (0, 0, 1));
        returns.call(1);
        returns.call(2);
        let saved = returns.saved(1);
        assert_eq!([returns.ret(), returns.ret()], [(2, false), (1, false)]);
        returns.call(8);
        returns.call(9);
        returns.repair(saved);
        assert_eq!([returns.ret(), returns.ret()], [(9, false), (1, false)], "below the call");
    }

    #[test]
    fn last_in_first_out_until_it_wraps() {
        let mut returns = Returns::new(2);
        let full = [1, 2, 3].map(|address| returns.call(address));
        assert_eq!(full, [false, false, true]);
        let popped = [returns.ret(), returns.ret(), returns.ret()];
        assert_eq!(popped, [(3, false), (2, false), (3, true)]);
    }
}
