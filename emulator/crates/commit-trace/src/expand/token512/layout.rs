//! The bytes of a token, little-endian:
//!
//! | bytes | field |
//! |---|---|
//! | 0–7 | time-stamp counter |
//! | 8–15 | the core's cycle counter |
//! | 16 | bits: 0 committing, 1 valid, 2 ready, 3 empty, 4 dispatching, 5 rolling back, 6 exception, 7 CSR stall |
//! | 17 | low nibble: number committing; high nibble: number valid at the head |
//! | 18–19, 20–21, 22–23 | entry numbers: head (the row's first), point of no return, tail |
//! | 24–31 … 56–63 | five slots, the banks of the head's row: byte 0 bits 0 committing, 1 valid, 2 mispredicted, 3 flushes; bytes 1–7 the low 56 bits of the PC |

/// Size of a token, in bytes.
pub const TOKEN_BYTES: usize = 64;
/// Instructions of a row that a token can show.
pub(super) const SLOTS: usize = 5;

/// One bank of the row at the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot {
    pub committing: bool,
    pub valid: bool,
    pub mispredicted: bool,
    pub flushes: bool,
    pub pc: u64,
}

/// The token of one cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Token {
    pub cycle: u64,
    pub ready: bool,
    pub empty: bool,
    pub dispatching: bool,
    pub exception: bool,
    pub csr_stall: bool,
    pub head: u16,
    pub tail: u16,
    pub slots: [Slot; SLOTS],
}

impl Token {
    /// Returns the token's bytes. Both counters are the cycle. Rolling back and the point of no return are not known: the
    /// token says that there is no rolling back (its cycles show an empty ROB), and that the point of no return is the head.
    pub(super) fn bytes(&self) -> [u8; TOKEN_BYTES] {
        let count = |holds: fn(&Slot) -> bool| self.slots.iter().filter(|s| holds(s)).count() as u8;
        let (committing, valid) = (count(|s| s.committing), count(|s| s.valid));
        let state = [
            committing != 0,
            valid != 0,
            self.ready,
            self.empty,
            self.dispatching,
            false,
            self.exception,
            self.csr_stall,
        ];
        let mut bytes = [0; TOKEN_BYTES];
        bytes[..8].copy_from_slice(&self.cycle.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.cycle.to_le_bytes());
        bytes[16] = bits(&state);
        bytes[17] = committing | valid << 4;
        for (n, index) in [self.head, self.head, self.tail].into_iter().enumerate() {
            bytes[18 + 2 * n..20 + 2 * n].copy_from_slice(&index.to_le_bytes());
        }
        for (slot, bytes) in self.slots.iter().zip(bytes[24..].chunks_exact_mut(8)) {
            bytes.copy_from_slice(&(slot.pc << 8).to_le_bytes());
            bytes[0] = bits(&[slot.committing, slot.valid, slot.mispredicted, slot.flushes]);
        }
        bytes
    }
}

/// Packs flags into a byte, the first into bit 0.
fn bits(flags: &[bool]) -> u8 {
    flags.iter().rev().fold(0, |byte, flag| byte << 1 | u8::from(*flag))
}
