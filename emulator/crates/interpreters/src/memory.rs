//! What is read.

/// Virtual memory of the process that runs.
pub trait Memory {
    /// Fills `bytes` from a virtual address; false if not all of them are mapped. They may be anything then.
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool;
}

/// Reads a little-endian number of 8 bytes.
pub(crate) fn word(memory: &impl Memory, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory.read(address, &mut bytes).then(|| u64::from_le_bytes(bytes))
}

/// The number of 8 bytes at an offset of what was read.
pub(crate) fn word_of(bytes: &[u8], offset: u64) -> Option<u64> {
    let offset = usize::try_from(offset).ok()?;
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

/// The number of 4 bytes at an offset of what was read.
pub(crate) fn half_of(bytes: &[u8], offset: u64) -> Option<u32> {
    let offset = usize::try_from(offset).ok()?;
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}
