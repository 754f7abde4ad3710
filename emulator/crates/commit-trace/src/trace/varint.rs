//! Variable-length integers (LEB128), and signed ones folded into them.

/// Appends a number, seven bits a byte, low bits first.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number: small magnitudes stay short.
#[inline]
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, (value << 1 ^ value >> 63) as u64);
}

/// Reads what the functions above wrote; every read is checked.
#[derive(Debug)]
pub struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    /// Reads a number.
    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 { Some(u64::from(first)) } else { self.long(first) }
    }

    fn long(&mut self, first: u8) -> Option<u64> {
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    #[inline]
    pub(super) fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads a number that must fit.
    pub(super) fn narrow<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.number()?).ok()
    }

    /// Reads a `u32` of four bytes, little-endian.
    pub(super) fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    /// Reads a `u64` of eight bytes, little-endian.
    pub(super) fn u64(&mut self) -> Option<u64> {
        self.bytes(8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_and_refuses_what_is_too_long() {
        let numbers = [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX];
        let mut bytes = Vec::new();
        for number in numbers {
            put(&mut bytes, number);
            put_signed(&mut bytes, number as i64);
        }
        let mut cursor = Cursor(&bytes);
        for number in numbers {
            assert_eq!(cursor.number(), Some(number));
            assert_eq!(cursor.signed(), Some(number as i64));
        }
        assert_eq!(cursor.number(), None);
        assert_eq!(Cursor(&[0x80; 11]).number(), None);
    }
}
