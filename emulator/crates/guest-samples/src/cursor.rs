//! Little-endian fields from the front of a slice.

/// Reads and advances; `None` when the bytes run out.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.bytes(1).map(|b| b[0])
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.bytes(2)?.try_into().ok()?))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    /// Skips `count` 64-bit words.
    pub(crate) fn skip_words(&mut self, count: u64) -> Option<()> {
        self.bytes(usize::try_from(count.checked_mul(8)?).ok()?).map(|_| ())
    }
}

/// Returns the 64-bit word at a byte offset.
pub(crate) fn word(body: &[u8], offset: usize) -> Option<u64> {
    Cursor(body.get(offset..)?).u64()
}

/// Returns a string that ends with a zero byte.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
