//! [`Snapshot`] for numbers and collections of the standard library.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::rc::Rc;

use crate::{Archive, Result, Snapshot};

/// Bytes of numbers that are saved or loaded at once.
const PIECE: usize = 4096;

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Snapshot for $type {
            #[inline]
            fn snapshot(&mut self, archive: &mut Archive<'_>) -> Result {
                let mut bytes = self.to_le_bytes();
                archive.bytes(&mut bytes)?;
                *self = Self::from_le_bytes(bytes);
                Ok(())
            }

            fn snapshot_all(values: &mut [Self], archive: &mut Archive<'_>) -> Result {
                const SIZE: usize = size_of::<$type>();
                // What fits in a host's cache, and on its stack.
                for values in values.chunks_mut(PIECE / SIZE) {
                    let mut bytes = [0; PIECE];
                    let bytes = &mut bytes[..values.len() * SIZE];
                    for (bytes, value) in bytes.as_chunks_mut::<SIZE>().0.iter_mut().zip(&*values) {
                        *bytes = value.to_le_bytes();
                    }
                    archive.bytes(bytes)?;
                    for (value, bytes) in values.iter_mut().zip(bytes.as_chunks::<SIZE>().0) {
                        *value = Self::from_le_bytes(*bytes);
                    }
                }
                Ok(())
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 i128);

impl Snapshot for usize {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> Result {
        let mut value = *self as u64;
        value.snapshot(archive)?;
        let fits = Self::try_from(value);
        archive.check(fits.is_ok(), || format!("expected an index, found {value}"))?;
        *self = fits.unwrap_or(0);
        Ok(())
    }
}

impl Snapshot for bool {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> Result {
        let mut value = u8::from(*self);
        value.snapshot(archive)?;
        archive.check(value < 2, || format!("expected 0 or 1, found {value}"))?;
        *self = value == 1;
        Ok(())
    }
}

impl<A: Snapshot, B: Snapshot> Snapshot for (A, B) {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> Result {
        self.0.snapshot(archive)?;
        self.1.snapshot(archive)
    }
}

impl<T: Snapshot + Default> Snapshot for Option<T> {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> Result {
        let mut some = self.is_some();
        some.snapshot(archive)?;
        if !some {
            *self = None;
            return Ok(());
        }
        self.get_or_insert_default().snapshot(archive)
    }
}

impl<T: Snapshot + Copy> Snapshot for Cell<T> {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> Result {
        self.get_mut().snapshot(archive)
    }
}

/// The cell is shared: its other owners see the loaded value.
impl<T: Snapshot + Copy> Snapshot for Rc<Cell<T>> {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> Result {
        let mut value = self.get();
        value.snapshot(archive)?;
        self.set(value);
        Ok(())
    }
}

impl<T: Snapshot, const N: usize> Snapshot for [T; N] {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> Result {
        T::snapshot_all(self, archive)
    }
}

/// The length is saved, and a loaded one must equal that of the slice.
impl<T: Snapshot> Snapshot for [T] {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> Result {
        let length = archive.length(self.len())?;
        archive.check(length == self.len(), || {
            format!("expected {} entries, found {length}", self.len())
        })?;
        T::snapshot_all(self, archive)
    }
}

impl<T: Snapshot + ?Sized> Snapshot for Box<T> {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> Result {
        (**self).snapshot(archive)
    }
}

/// The length may change on loading, as for all collections below.
impl<T: Snapshot + Default> Snapshot for Vec<T> {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> Result {
        let length = archive.length(self.len())?;
        self.truncate(length);
        for n in 0..length {
            // The vector grows as elements are loaded, so that a wrong length allocates no memory.
            if n == self.len() {
                self.push(T::default());
            }
            self[n].snapshot(archive)?;
        }
        Ok(())
    }
}

impl<T: Snapshot + Default> Snapshot for VecDeque<T> {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> Result {
        let mut items: Vec<T> = self.drain(..).collect();
        let result = items.snapshot(archive);
        self.extend(items);
        result
    }
}

/// Entries are saved in the order of their keys, so that equal maps give equal bytes.
impl<K, V> Snapshot for HashMap<K, V>
where
    K: Snapshot + Default + Ord + Hash,
    V: Snapshot + Default,
{
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> Result {
        let mut entries: Vec<(K, V)> = self.drain().collect();
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        let result = entries.snapshot(archive);
        self.extend(entries);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SnapshotError;

    fn saved(value: &mut impl Snapshot) -> Vec<u8> {
        let mut archive = Archive::saving();
        value.snapshot(&mut archive).unwrap();
        archive.into_bytes()
    }

    #[test]
    fn what_was_saved_is_loaded() {
        let map = HashMap::from([(3u64, vec![1u8, 2]), (1, vec![])]);
        let mut state = ((Some(-1i128), [true, false]), (map, VecDeque::from([7u16])));
        let bytes = saved(&mut state);
        let mut loaded = Default::default();
        std::mem::swap(&mut loaded, &mut state);
        let mut archive = Archive::loading(&bytes);
        state.snapshot(&mut archive).unwrap();
        archive.end().unwrap();
        assert_eq!(state, loaded);
        assert_eq!(saved(&mut state), bytes);
    }

    #[test]
    fn many_numbers_are_saved_as_one_by_one() {
        // More than one piece, and a part of another.
        let mut numbers: Box<[u32]> = (0..5000u32).map(|n| n.wrapping_mul(0x0101_0107)).collect();
        let mut one_by_one = (numbers.len() as u64).to_le_bytes().to_vec();
        one_by_one.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        assert_eq!(saved(&mut numbers), one_by_one);
        let mut loaded: Box<[u32]> = vec![0; 5000].into();
        loaded.snapshot(&mut Archive::loading(&one_by_one)).unwrap();
        assert_eq!(loaded, numbers);
        let cut = &one_by_one[..one_by_one.len() - 1];
        let short = loaded.snapshot(&mut Archive::loading(cut)).unwrap_err();
        assert!(matches!(short, SnapshotError::Short { .. }));
    }

    #[test]
    fn impossible_values_are_refused() {
        let error = |bytes: &[u8], value: &mut dyn Snapshot| {
            value.snapshot(&mut Archive::loading(bytes)).unwrap_err()
        };
        assert!(matches!(error(&[2], &mut false), SnapshotError::Value { .. }));
        assert!(matches!(error(&[0; 7], &mut 0u64), SnapshotError::Short { .. }));
        // A length that would fill the host's memory.
        let huge = error(&[0xff; 8], &mut Vec::<u64>::new());
        assert!(matches!(huge, SnapshotError::Short { .. }));
        let mut built: Box<[u8]> = vec![0; 3].into();
        let other = error(&saved(&mut vec![1u8, 2]), &mut built);
        assert_eq!(other.to_string(), "at byte 8: expected 3 entries, found 2");
        let mut archive = Archive::saving();
        archive.same("harts", "2").unwrap();
        let bytes = archive.into_bytes();
        let other = Archive::loading(&bytes).same("harts", "1").unwrap_err();
        assert!(other.to_string().contains("harts: expected \"1\", found \"2\""));
    }
}
