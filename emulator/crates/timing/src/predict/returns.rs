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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_in_first_out_until_it_wraps() {
        let mut returns = Returns::new(2);
        let full = [1, 2, 3].map(|address| returns.call(address));
        assert_eq!(full, [false, false, true]);
        let popped = [returns.ret(), returns.ret(), returns.ret()];
        assert_eq!(popped, [(3, false), (2, false), (3, true)]);
    }
}
