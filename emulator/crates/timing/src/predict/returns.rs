//! The return address stack (`ifu/bpd/ras.scala`). It is repaired after a misprediction, so that in
//! program order it is exact until it overflows.

/// Limit of entries.
const MAX: usize = 64;

/// A circular stack.
pub(crate) struct Returns {
    addresses: [u64; MAX],
    top: usize,
    size: usize,
}

snapshot::snapshot!(Returns { addresses, top } keeps { size });

impl Returns {
    pub fn new(size: u32) -> Self {
        Self {
            addresses: [0; MAX],
            top: 0,
            size: (size as usize).clamp(1, MAX),
        }
    }

    pub fn call(&mut self, address: u64) {
        self.top = (self.top + 1) % self.size;
        self.addresses[self.top] = address;
    }

    /// The predicted address; the entry is consumed.
    pub fn ret(&mut self) -> u64 {
        let address = self.addresses[self.top];
        self.top = (self.top + self.size - 1) % self.size;
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_in_first_out_until_it_wraps() {
        let mut returns = Returns::new(2);
        for address in [1, 2, 3] {
            returns.call(address);
        }
        assert_eq!([returns.ret(), returns.ret(), returns.ret()], [3, 2, 3]);
    }
}
