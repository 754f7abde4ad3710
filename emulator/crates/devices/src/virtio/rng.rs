//! Entropy device (virtio 1.2, section 5.4) with a seed, so that two runs draw the same numbers.

use super::{Backend, Request};

/// Maximum number of bytes per request; a driver that needs more makes another request.
const MOST: usize = 4096;

/// Steele, Lea and Flood's SplitMix64: every 64-bit seed gives another sequence. Not for secrets.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let words = std::iter::repeat_with(|| self.next_u64().to_le_bytes());
        let mut bytes: Vec<u8> = words.take(count.div_ceil(8)).flatten().collect();
        bytes.truncate(count);
        bytes
    }
}

/// The device.
pub struct Rng(SplitMix64);

snapshot::snapshot!(SplitMix64(0));
snapshot::snapshot!(Rng(0));

impl Rng {
    /// A device that gives the sequence of `seed`. A reset does not start it again.
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }
}

impl Backend for Rng {
    fn device_type(&self) -> u32 {
        4
    }

    fn queues(&self) -> usize {
        1
    }

    fn serve(&mut self, request: Request<'_>) -> Option<Vec<u8>> {
        Some(self.0.bytes(request.room.min(MOST)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_numbers_of_the_reference() {
        // The first outputs of SplitMix64's reference implementation for seed 1234567.
        let mut numbers = SplitMix64::new(1_234_567);
        assert_eq!(numbers.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(numbers.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn replies_are_bounded_and_repeatable() {
        let ask = |rng: &mut Rng, room| {
            rng.serve(Request { queue: 0, bytes: &[], room, nanos: 0 }).unwrap()
        };
        let (mut one, mut two) = (Rng::new(7), Rng::new(7));
        assert_eq!(ask(&mut one, 13), ask(&mut two, 13));
        assert_ne!(ask(&mut one, 13), ask(&mut Rng::new(7), 13));
        assert_eq!(ask(&mut one, usize::MAX).len(), MOST);
        assert_eq!(ask(&mut one, 0), []);
    }
}
