//! Puts guest programs into memory: ELF files, raw images, and the layout that firmware and
//! kernel expect at reset.

mod boot;
mod elf;

use std::ops::Range;

pub use boot::{Boot, BootImages, KERNEL_BASE, ResetState};
pub use elf::{Elf, ElfSymbols, nearest_symbol};

use devices::Ram;

/// A file and the name that errors call it by.
#[derive(Clone, Copy)]
pub struct Image<'a> {
    /// Name, usually a path.
    pub name: &'a str,
    /// Content.
    pub bytes: &'a [u8],
}

/// A file that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A header field has a value that the machine cannot take.
    #[error("{file}: {field}: expected {expected}, found {found}")]
    Field {
        /// File name.
        file: String,
        /// Name of the field.
        field: &'static str,
        /// Values that the machine can take, in words.
        expected: String,
        /// Value that was found.
        found: String,
    },
    /// The ELF structures do not hold together.
    #[error("{file}: malformed ELF file: {reason}")]
    Malformed {
        /// File name.
        file: String,
        /// The parser's reason.
        reason: String,
    },
    /// Something lies beyond the end of the file.
    #[error("{file}: truncated: {what} ends at byte {end:#x}, the file has {size:#x}")]
    Truncated {
        /// File name.
        file: String,
        /// What lies beyond the end.
        what: String,
        /// End of what does not fit, as an offset in the file.
        end: u64,
        /// Size of the file.
        size: u64,
    },
    /// Something does not lie in guest memory.
    #[error("{file}: {what} at {start:#x}, size {size:#x}, is not in memory ({}-{:#x})",
        format_args!("{:#x}", ram.start), ram.end)]
    OutsideRam {
        /// File name.
        file: String,
        /// What does not fit.
        what: String,
        /// First address.
        start: u64,
        /// Size in bytes.
        size: u64,
        /// The guest's memory.
        ram: Range<u64>,
    },
    /// Two things want the same memory.
    #[error("{file}: {what} at {start:#x} overlaps {other}")]
    Overlap {
        /// File name.
        file: String,
        /// What overlaps.
        what: String,
        /// First address of what overlaps.
        start: u64,
        /// What the memory holds already.
        other: String,
    },
    /// The device tree could not be written.
    #[error(transparent)]
    DeviceTree(#[from] crate::DeviceTreeError),
}

/// Copies a file to `at`. Returns where it lies.
pub fn load_raw(image: Image<'_>, at: u64, ram: &mut Ram) -> Result<Range<u64>, LoadError> {
    write(image, "image", at, image.bytes, image.bytes.len() as u64, ram)
}

/// Writes `bytes` and zeros up to `size` bytes.
fn write(
    image: Image<'_>,
    what: &str,
    at: u64,
    bytes: &[u8],
    size: u64,
    ram: &mut Ram,
) -> Result<Range<u64>, LoadError> {
    let whole = devices::RAM_BASE..ram.end();
    let Some(target) = ram.slice_mut(at, size) else {
        let (file, what) = (image.name.to_owned(), what.to_owned());
        return Err(LoadError::OutsideRam { file, what, start: at, size, ram: whole });
    };
    let (content, zeros) = target.split_at_mut(bytes.len());
    content.copy_from_slice(bytes);
    zeros.fill(0);
    Ok(at..at + size)
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

#[cfg(test)]
mod tests;
