//! The memory buffer of the records: an instance of Ssamb (draft of March 2026).
//!
//! The address of a record is decided when it is made; the record is written when the hart asks for it, before software can
//! know. Addresses are translated as in supervisor mode, always.

use std::collections::VecDeque;

use super::record::{RECORD_BYTES, Record};

/// Fields of `spdisambcs`.
pub mod buffer_control {
    /// The buffer takes records.
    pub const EN: u64 = 1 << 0;
    /// SIZE, at bit 1: the buffer has 2^(SIZE + 12) bytes.
    pub const SIZE_SHIFT: u32 = 1;
    /// BMITH, at bit 9: the two top bits of the offset at which [`BMI`] is set.
    pub const BMITH_SHIFT: u32 = 9;
    /// Reaching the threshold makes an interrupt pending.
    pub const BMIEN: u64 = 1 << 11;
    /// TFPTR, at bit 12: page of the buffer that could not be written.
    pub const TFPTR_SHIFT: u32 = 12;
    /// The buffer stops when it is full.
    pub const SOF: u64 = 1 << 32;
    /// A page could not be written.
    pub const TF: u64 = 1 << 59;
    /// The threshold was reached.
    pub const BMI: u64 = 1 << 60;
    /// The buffer was full at least once.
    pub const WRAP: u64 = 1 << 61;
    /// No record is on its way to memory.
    pub const EMPTY: u64 = 1 << 62;
    /// The buffer's page is translated.
    pub const TRV: u64 = 1 << 63;
}
use buffer_control::*;

/// Largest SIZE: 4 MiB.
const MOST: u64 = 10;
/// Most records that are on their way to memory, about.
const MOST_WAITING: u64 = 4096;
const SIZE: u64 = 31 << SIZE_SHIFT;
const TFPTR: u64 = 0xf_ffff << TFPTR_SHIFT;
/// Bits that software writes.
const WRITABLE: u64 = EN | SIZE | 3 << BMITH_SHIFT | BMIEN | TFPTR | SOF | TF | BMI | WRAP;

/// Registers and records of the buffer.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    control: u64,
    address: u64,
    /// Records that are not written yet, with their addresses.
    waiting: VecDeque<(u64, Record)>,
    /// True if the buffer's interrupt is to become pending.
    interrupt: bool,
}

snapshot::snapshot!(Buffer { control, address, waiting, interrupt });

impl Buffer {
    /// Returns `spdisambcs`.
    pub fn control(&self) -> u64 {
        let empty = if self.waiting.is_empty() { EMPTY } else { 0 };
        let ready = if self.control & EN != 0 { TRV } else { 0 };
        self.control | empty | ready
    }

    /// Returns `spdisambaddr`.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Writes `spdisambcs`.
    pub fn set_control(&mut self, value: u64) {
        let size = (value & SIZE) >> SIZE_SHIFT;
        self.control = value & WRITABLE & !SIZE | size.min(MOST) << SIZE_SHIFT;
    }

    /// Writes `spdisambaddr`.
    pub fn set_address(&mut self, value: u64) {
        self.address = value & !(RECORD_BYTES - 1);
    }

    fn bytes(&self) -> u64 {
        1 << (((self.control & SIZE) >> SIZE_SHIFT) + 12)
    }

    /// Adds a record; returns false if the buffer takes none.
    pub(super) fn push(&mut self, record: Record) -> bool {
        let place = self.place();
        self.waiting.extend(place.map(|address| (address, record)));
        place.is_some()
    }

    /// Returns the number of records that the buffer takes until it stops.
    pub(crate) fn room(&self) -> u64 {
        let stops = self.control & SOF != 0;
        if self.control & EN == 0 || self.control & TF != 0 || stops && self.control & WRAP != 0 {
            return 0;
        }
        match stops {
            true => (self.bytes() - (self.address & (self.bytes() - 1))) / RECORD_BYTES,
            false => u64::MAX,
        }
    }

    /// Returns the address of the next record, and moves on to the one after it; `None` if the buffer takes none.
    pub fn place(&mut self) -> Option<u64> {
        if self.room() == 0 {
            return None;
        }
        let place = self.address;
        let mask = self.bytes() - 1;
        let offset = (self.address.wrapping_add(RECORD_BYTES)) & mask;
        if offset == 0 {
            self.control |= WRAP;
        }
        let quarter = |offset: u64| offset / (self.bytes() / 4);
        let threshold = self.control >> BMITH_SHIFT & 3;
        let crossed = quarter(offset) == threshold && quarter(self.address & mask) != threshold;
        if crossed && self.control & BMIEN != 0 {
            self.control |= BMI;
            self.interrupt = true;
        }
        self.address = self.address & !mask | offset;
        Some(place)
    }

    /// Returns the number of records until the buffer's interrupt, or until so many are on their way that they have to be
    /// written.
    pub(super) fn records_to_write(&self) -> u64 {
        let room = MOST_WAITING.saturating_sub(self.waiting.len() as u64);
        if self.control & BMIEN == 0 || self.control & EN == 0 {
            return room.max(1);
        }
        let quarter = self.bytes() / 4;
        let threshold = (self.control >> BMITH_SHIFT & 3) * quarter;
        let to_go = threshold.wrapping_sub(self.address) & (self.bytes() - 1);
        let to_go = if to_go == 0 { self.bytes() } else { to_go };
        (to_go / RECORD_BYTES).min(room).max(1)
    }

    /// Takes the next record that is to be written, with its address.
    pub(super) fn take_record(&mut self) -> Option<(u64, Record)> {
        self.waiting.pop_front()
    }

    /// Returns whether no record is on its way.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Says that the page at `address` cannot be written: records on their way are lost. Returns how many.
    pub fn fault(&mut self, address: u64) -> u64 {
        let page = (address & (self.bytes() - 1)) >> 12;
        self.control = self.control & !TFPTR | TF | page << TFPTR_SHIFT;
        self.interrupt = true;
        let lost = self.waiting.len() as u64 + 1;
        self.waiting.clear();
        lost
    }

    /// Returns, once, that the buffer's interrupt (`sip.LAMBIP`) is to become pending.
    pub fn take_interrupt(&mut self) -> bool {
        std::mem::take(&mut self.interrupt)
    }
}
