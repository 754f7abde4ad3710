//! Fixed bits of an encoding, written as the specification draws them.

/// The encodings in which the bits under `mask` equal `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub mask: u32,
    pub value: u32,
}

impl Pattern {
    /// Matches nothing: a value bit outside the mask.
    pub(crate) const NEVER: Self = Self { mask: 0, value: 1 };

    /// True if `raw` has the fixed bits.
    pub(crate) const fn matches(self, raw: u32) -> bool {
        raw & self.mask == self.value
    }
}

/// Reads 32 characters `0`, `1` and `.`, most significant bit first; spaces are ignored.
/// Anything else fails to compile.
pub(crate) const fn pattern(bits: &str) -> Pattern {
    let bytes = bits.as_bytes();
    let (mut mask, mut value, mut count, mut at) = (0u32, 0u32, 0, 0);
    while at < bytes.len() {
        let (fixed, bit) = match bytes[at] {
            b'0' => (1, 0),
            b'1' => (1, 1),
            b'.' => (0, 0),
            b' ' => {
                at += 1;
                continue;
            }
            _ => panic!("an encoding pattern has a character other than 0, 1, dot and space"),
        };
        mask = mask << 1 | fixed;
        value = value << 1 | bit;
        count += 1;
        at += 1;
    }
    assert!(count == 32, "an encoding pattern does not have 32 bits");
    Pattern { mask, value }
}
