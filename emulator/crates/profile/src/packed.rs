//! Amounts by ascending number, in few bytes.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Ascending numbers, each with an amount that is not 0: the distance from the number before (less one) and the
/// amount, both as LEB128 (DWARF 5, section 7.6). Four to five bytes, where a table has sixteen and gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packed(Box<[u8]>);

impl Packed {
    /// Returns the numbers and their amounts.
    pub(crate) fn iter(&self) -> Unpacked<'_> {
        Unpacked { bytes: &self.0, next: 0 }
    }

    /// True if there are no amounts.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the amount of one number; it reads all amounts before that one.
    pub(crate) fn get(&self, number: u64) -> u64 {
        let found = self.iter().find(|(found, _)| *found >= number);
        found.map_or(0, |(found, amount)| if found == number { amount } else { 0 })
    }

    /// Returns the multiple of all amounts.
    pub(crate) fn times(&self, factor: u64) -> Self {
        self.iter().map(|(number, amount)| (number, amount.saturating_mul(factor))).collect()
    }

    /// Adds amounts, whose numbers ascend too.
    pub(crate) fn add(&mut self, more: impl Iterator<Item = (u64, u64)>) {
        let mut more = more.peekable();
        if more.peek().is_some() {
            *self = merged(self.iter(), more).collect();
        }
    }
}

/// Packs amounts of ascending numbers; amounts of 0 are left out.
impl FromIterator<(u64, u64)> for Packed {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(amounts: I) -> Self {
        let mut bytes = Vec::new();
        let mut next = 0;
        for (number, amount) in amounts.into_iter().filter(|(_, amount)| *amount != 0) {
            debug_assert!(number >= next, "{number} after {next}");
            push(&mut bytes, number - next);
            push(&mut bytes, amount);
            next = number + 1;
        }
        Self(bytes.into())
    }
}

/// Puts `packed` into a list at `index`; the list grows if need be.
pub(crate) fn put(list: &mut Vec<Packed>, index: usize, packed: Packed) {
    list.resize(list.len().max(index + 1), Packed::default());
    list[index] = packed;
}

/// Merges two ascending lists; amounts of a number that both have are added up.
pub(crate) fn merged(
    one: impl Iterator<Item = (u64, u64)>,
    other: impl Iterator<Item = (u64, u64)>,
) -> impl Iterator<Item = (u64, u64)> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || {
        let (Some(&(a, x)), Some(&(b, y))) = (one.peek(), other.peek()) else {
            return one.next().or_else(|| other.next());
        };
        if a <= b {
            one.next();
        }
        if b <= a {
            other.next();
        }
        let amount = if a <= b { x } else { 0 } + if b <= a { y } else { 0 };
        Some((a.min(b), amount))
    })
}

/// Sorts amounts by key, and adds up those of one key.
pub(crate) fn summed<K: Ord>(mut amounts: Vec<(K, u64)>) -> Vec<(K, u64)> {
    // Mostly they are in order already, which a stable sort makes use of.
    amounts.sort_by(|a, b| a.0.cmp(&b.0));
    amounts.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
    amounts
}

#[inline]
fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// See [`Packed::iter`].
#[derive(Clone)]
pub(crate) struct Unpacked<'a> {
    bytes: &'a [u8],
    next: u64,
}

impl Unpacked<'_> {
    #[inline]
    fn pull(&mut self) -> Option<u64> {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            shift += 7;
        }
    }
}

impl Iterator for Unpacked<'_> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        let number = self.next.checked_add(self.pull()?)?;
        let amount = self.pull()?;
        self.next = number.checked_add(1)?;
        Some((number, amount))
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(Bytes)
    }
}

/// Takes bytes, or numbers where a format has no bytes (JSON).
struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = Packed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Packed, E> {
        let packed = Packed(bytes.into());
        let mut unpacked = packed.iter();
        while unpacked.next().is_some() {}
        match unpacked.bytes {
            [] => Ok(packed),
            _ => Err(E::custom("packed amounts: numbers beyond 64 bits")),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Packed, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = list.next_element()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sums_are_those_of_a_map(
            lists in prop::collection::vec(prop::collection::btree_map(0u64..1 << 40, any::<u32>(), 0..50), 0..4)
        ) {
            let (mut packed, mut expected) = (Packed::default(), BTreeMap::new());
            for list in lists {
                for (number, amount) in &list {
                    *expected.entry(*number).or_insert(0) += u64::from(*amount);
                }
                packed.add(list.into_iter().map(|(number, amount)| (number, amount.into())));
            }
            expected.retain(|_, amount| *amount > 0);
            for (number, amount) in &expected {
                prop_assert_eq!(packed.get(*number), *amount);
            }
            let text = serde_json::to_string(&packed).unwrap();
            prop_assert_eq!(serde_json::from_str::<Packed>(&text).unwrap(), packed.clone());
            prop_assert_eq!(Vec::from_iter(packed.iter()), Vec::from_iter(expected));
        }

        #[test]
        fn no_bytes_reach_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = serde_json::from_str::<Packed>(&serde_json::to_string(&bytes).unwrap());
        }
    }

    #[test]
    fn the_ends_of_the_range() {
        let all = [(0, 1), (1, u64::MAX), (u64::MAX - 1, 7)];
        let packed = Packed::from_iter(all.into_iter().chain([(u64::MAX, 0)]));
        assert_eq!(Vec::from_iter(packed.iter()), all);
        assert_eq!((packed.get(2), packed.get(u64::MAX)), (0, 0));
    }
}
