//! Little-endian bytes of a record.

/// Bytes under construction.
#[derive(Default)]
pub(super) struct Bytes(pub Vec<u8>);

impl Bytes {
    pub(super) fn u32(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn u64(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// A string with its terminating zero, filled up to whole words.
    pub(super) fn padded(&mut self, text: &str) -> &mut Self {
        let length = (text.len() + 1).next_multiple_of(8);
        self.raw(text.as_bytes());
        self.0.resize(self.0.len() + length - text.len(), 0);
        self
    }

    /// A string as headers have it: its padded length, then itself.
    pub(super) fn header_string(&mut self, text: &str) -> &mut Self {
        self.u32((text.len() + 1).next_multiple_of(8) as u32).padded(text)
    }

    /// The body with a record's header before it.
    pub(super) fn record(self, kind: u32, misc: u16) -> Self {
        let mut record = Self::default();
        // The longest body holds a path of 4096 bytes.
        let size = self.0.len() as u16 + 8;
        record.u32(kind).raw(&misc.to_le_bytes()).raw(&size.to_le_bytes());
        record.raw(&self.0);
        record
    }
}
