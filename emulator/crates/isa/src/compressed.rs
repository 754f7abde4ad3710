//! Compressed instructions (C, for RV64 with D), decoded to the operations they expand to.

use crate::DecodedInst;

/// Decodes a 16-bit encoding.
pub(crate) fn decode(raw: u16) -> DecodedInst {
    DecodedInst::illegal(raw.into())
}
