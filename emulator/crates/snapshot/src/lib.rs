//! The state of a machine as bytes. The fields of a component are listed once, for saving and for loading (as in QEMU's
//! vmstate); an [`Archive`] does either.
//!
//! State is loaded in place, into a component that was built from the same configuration. The archive does not hold the
//! configuration; array sizes that follow from it are checked. `serde` is not used because it builds new values, whose
//! sizes could differ from the configured ones.
//!
//! ```
//! use snapshot::{Archive, Snapshot, snapshot};
//!
//! struct Ring {
//!     entries: Box<[u64]>,
//!     next: u32,
//!     latency: u64,
//! }
//! snapshot!(Ring { entries, next } keeps { latency });
//!
//! let ring = |entries: &[u64], next| Ring { entries: entries.into(), next, latency: 3 };
//! let mut archive = Archive::saving();
//! ring(&[1, 2], 1).snapshot(&mut archive)?;
//! let bytes = archive.into_bytes();
//!
//! let mut loaded = ring(&[0, 0], 0);
//! loaded.snapshot(&mut Archive::loading(&bytes))?;
//! assert_eq!((&*loaded.entries, loaded.next, loaded.latency), (&[1, 2][..], 1, 3));
//! // Another configuration:
//! assert!(ring(&[0; 3], 0).snapshot(&mut Archive::loading(&bytes)).is_err());
//! # Ok::<(), snapshot::SnapshotError>(())
//! ```

mod values;

/// Why state cannot be saved or loaded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes end too early.
    #[error("at byte {at}: the end, expected {expected} more bytes")]
    Short {
        /// Offset in the archive.
        at: usize,
        /// Bytes that should follow.
        expected: usize,
    },
    /// A value that the state cannot have, or of another configuration.
    #[error("at byte {at}: {what}")]
    Value {
        /// Offset in the archive.
        at: usize,
        /// What is wrong with it.
        what: String,
    },
    /// Something is in a state that cannot be saved.
    #[error("{0}")]
    Unsaved(String),
}

/// The result of saving or loading.
pub type Result<T = (), E = SnapshotError> = std::result::Result<T, E>;

/// Something with state.
pub trait Snapshot {
    /// Saves the state to the archive, or loads it from there.
    ///
    /// # Errors
    /// The archive does not hold such a state. The value is then partly loaded and must not be used.
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> Result;

    /// Saves or loads values that follow each other, as if one by one; of numbers many at once.
    ///
    /// # Errors
    /// The archive does not hold such values, which are then partly loaded and must not be used.
    fn snapshot_all(values: &mut [Self], archive: &mut Archive<'_>) -> Result
    where
        Self: Sized,
    {
        values.iter_mut().try_for_each(|value| value.snapshot(archive))
    }
}

enum Direction<'a> {
    /// The bytes saved so far.
    Save(Vec<u8>),
    /// The bytes not loaded yet.
    Load(&'a [u8]),
}

/// The bytes that state is saved to, or loaded from.
pub struct Archive<'a> {
    direction: Direction<'a>,
    /// Bytes saved or loaded so far.
    at: usize,
}

impl Archive<'static> {
    /// An empty archive, to save state to.
    pub fn saving() -> Self {
        Self { direction: Direction::Save(Vec::new()), at: 0 }
    }
}

impl<'a> Archive<'a> {
    /// An archive that loads state from saved bytes.
    pub fn loading(bytes: &'a [u8]) -> Self {
        Self { direction: Direction::Load(bytes), at: 0 }
    }

    /// The saved bytes; those not loaded yet if the archive is loading.
    pub fn into_bytes(self) -> Vec<u8> {
        match self.direction {
            Direction::Save(bytes) => bytes,
            Direction::Load(rest) => rest.to_vec(),
        }
    }

    /// True if state is being loaded, false if it is being saved.
    pub fn is_loading(&self) -> bool {
        matches!(self.direction, Direction::Load(_))
    }

    /// Saves `bytes`, or overwrites them with loaded ones.
    ///
    /// # Errors
    /// [`SnapshotError::Short`].
    pub fn bytes(&mut self, bytes: &mut [u8]) -> Result {
        match &mut self.direction {
            Direction::Save(to) => to.extend_from_slice(bytes),
            Direction::Load(from) => {
                let short = SnapshotError::Short { at: self.at, expected: bytes.len() };
                let (head, rest) = from.split_at_checked(bytes.len()).ok_or(short)?;
                bytes.copy_from_slice(head);
                *from = rest;
            }
        }
        self.at += bytes.len();
        Ok(())
    }

    /// Saves a value of the configuration; loading fails if the saved value differs from `value`. With the name of a
    /// component as the value, it is a tag that shows where saved and loaded layouts diverge.
    ///
    /// # Errors
    /// [`SnapshotError::Value`] if the values differ.
    pub fn same(&mut self, what: &str, value: &str) -> Result {
        let mut saved = value.to_owned().into_bytes();
        saved.snapshot(self)?;
        let saved = String::from_utf8_lossy(&saved);
        self.check(saved == value, || format!("{what}: expected \"{value}\", found \"{saved}\""))
    }

    /// Checks a loaded value; `what` describes the fault.
    ///
    /// # Errors
    /// [`SnapshotError::Value`] unless `possible`.
    pub fn check(&self, possible: bool, what: impl FnOnce() -> String) -> Result {
        if possible {
            return Ok(());
        }
        Err(SnapshotError::Value { at: self.at, what: what() })
    }

    /// Saves or loads a number of elements. A loaded one is refused if fewer bytes than that are left, since each
    /// element takes at least one.
    fn length(&mut self, length: usize) -> Result<usize> {
        let mut length = length as u64;
        length.snapshot(self)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        match self.direction {
            Direction::Load(rest) if rest.len() < length => {
                Err(SnapshotError::Short { at: self.at, expected: length })
            }
            _ => Ok(length),
        }
    }

    /// Checks that every byte was loaded.
    ///
    /// # Errors
    /// [`SnapshotError::Value`] if some are left.
    pub fn end(&self) -> Result {
        let left = match self.direction {
            Direction::Save(_) => 0,
            Direction::Load(rest) => rest.len(),
        };
        self.check(left == 0, || format!("{left} bytes more than expected"))
    }
}

/// Implements [`Snapshot`] for a struct: `snapshot!(Type { fields } keeps { fields })`. Every field must be named: first
/// those that are saved, then those that stay as they were built. The struct may have one type parameter:
/// `snapshot!(Type<T> { … })`. A tuple struct of one value is written `snapshot!(Type(0))`.
#[macro_export]
macro_rules! snapshot {
    ($type:ident(0)) => {
        impl $crate::Snapshot for $type {
            fn snapshot(&mut self, archive: &mut $crate::Archive<'_>) -> $crate::Result {
                $crate::Snapshot::snapshot(&mut self.0, archive)
            }
        }
    };
    ($type:ident$(<$of:ident>)? { $($field:ident),* $(,)? } $(keeps { $($kept:ident),* $(,)? })?) => {
        impl$(<$of>)? $crate::Snapshot for $type$(<$of>)? {
            fn snapshot(&mut self, archive: &mut $crate::Archive<'_>) -> $crate::Result {
                let Self { $($field,)* $($($kept: _,)*)? } = self;
                $($crate::Snapshot::snapshot($field, archive)?;)*
                Ok(())
            }
        }
    };
}

/// Implements [`Snapshot`] for an enum without fields: `snapshot_enum!(Type: variants)`.
#[macro_export]
macro_rules! snapshot_enum {
    ($type:ident: $($variant:ident),* $(,)?) => {
        impl $crate::Snapshot for $type {
            fn snapshot(&mut self, archive: &mut $crate::Archive<'_>) -> $crate::Result {
                let all = [$($type::$variant),*];
                let same = |v: &$type| std::mem::discriminant(v) == std::mem::discriminant(self);
                let mut number = all.iter().position(same).unwrap_or(all.len()) as u8;
                number.snapshot(archive)?;
                let found = all.into_iter().nth(usize::from(number));
                archive.check(found.is_some(), || {
                    format!("{}: found number {number}", stringify!($type))
                })?;
                found.into_iter().for_each(|found| *self = found);
                Ok(())
            }
        }
    };
}
