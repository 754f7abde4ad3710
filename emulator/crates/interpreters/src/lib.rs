//! Frames of interpreted programs, read out of a guest's memory from outside.
//!
//! ```
//! use interpreters::{Image, Memory, Python, find_runtime};
//!
//! struct Nothing;
//! impl Memory for Nothing {
//!     fn read(&self, _address: u64, _bytes: &mut [u8]) -> bool {
//!         false
//!     }
//! }
//! let image = Image { start: 0x1000, len: 0x1000 };
//! assert!(find_runtime(&Nothing, image).is_none());
//! let mut frames = Vec::new();
//! Python::default().frames(&Nothing, (1, 0x2000), 7, &mut frames);
//! assert!(frames.is_empty());
//! ```
//!
//! A guest may have anything in its memory: nothing here panics, hangs, or takes memory without bound for it.

mod memory;
mod python;
#[cfg(test)]
mod testing;

pub use memory::Memory;
pub use python::{Function, Image, MAX_DEPTH, Python, find_runtime, is_python};

/// A function that a thread executes, and where it is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Number of the function ([`Python::functions`]); [`Frame::OTHER`] if there are too many to be told apart.
    pub function: u32,
    /// Line that it is at; 0 if its code has none there.
    pub line: u32,
}

impl Frame {
    /// Number of all functions together that are not told apart.
    pub const OTHER: u32 = u32::MAX;
}
