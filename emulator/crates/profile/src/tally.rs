//! Sums by a key of many values, of which few are in use at a time.

use rustc_hash::FxHashMap;

/// Sums that were added to lately: those of a loop fit, and in the host's caches.
const RECENT: usize = 8192;

/// Sums per key.
#[derive(Debug)]
pub(crate) struct Tally {
    /// By some bits of the key; a sum that is pushed out goes to the map. Far cheaper than the map alone.
    recent: Box<[(u64, u64)]>,
    sums: FxHashMap<u64, u64>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            recent: vec![(0, 0); RECENT].into(),
            sums: FxHashMap::default(),
        }
    }
}

impl Tally {
    /// Adds to the sum of `key`.
    #[inline]
    pub(crate) fn add(&mut self, key: u64, amount: u64) {
        let recent = &mut self.recent[(key ^ key >> 29) as usize % RECENT];
        if recent.0 != key {
            let (key, amount) = std::mem::replace(recent, (key, 0));
            if amount > 0 {
                *self.sums.entry(key).or_default() += amount;
            }
        }
        recent.1 += amount;
    }

    /// The sums that are not zero, by ascending key.
    pub(crate) fn finish(mut self) -> Vec<(u64, u64)> {
        for (key, amount) in self.recent.iter().filter(|(_, amount)| *amount > 0) {
            *self.sums.entry(*key).or_default() += amount;
        }
        let mut sums: Vec<_> = self.sums.into_iter().collect();
        sums.sort_unstable();
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_survive_their_neighbours() {
        let mut tally = Tally::default();
        // All in one place of the recent ones.
        let keys = [5, 5 + RECENT as u64, 5 + 2 * RECENT as u64, 1 << 40 | 5];
        for round in 1..=3 {
            keys.iter().for_each(|key| tally.add(*key, round));
        }
        tally.add(0, 1);
        let mut expected: Vec<_> = keys.map(|key| (key, 6)).into();
        expected.insert(0, (0, 1));
        assert_eq!(tally.finish(), expected);
    }
}
