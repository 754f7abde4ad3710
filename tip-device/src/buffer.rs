//! The buffer of samples in memory: a ring that the unit fills and software empties.
//!
//! Head and tail count samples and never wrap around. A sample has its place as soon as it is complete; it is written when
//! whoever owns the bus asks for it, before software can know of it.

use std::collections::VecDeque;

use register_table::field;

use crate::Sample;
use crate::regs::{BUFFER_BASE, MAX_BUFFER_SIZE, buffer_config};
use crate::sample::SAMPLE_BYTES;

/// Registers of the buffer, and what is on its way to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    base: u64,
    config: u64,
    head: u64,
    tail: u64,
    /// A sample could not be written: the buffer takes no more.
    fault: bool,
    /// Samples before `head` that are not written yet.
    waiting: VecDeque<Sample>,
}

snapshot::snapshot!(Buffer { base, config, head, tail, fault, waiting });

impl Buffer {
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn config(&self) -> u64 {
        self.config
    }

    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    pub(crate) fn tail(&self) -> u64 {
        self.tail
    }

    pub(crate) fn has_fault(&self) -> bool {
        self.fault
    }

    /// Sets where the buffer lies, and empties it.
    pub(crate) fn set_base(&mut self, base: u64) {
        *self = Self { base: base & BUFFER_BASE, config: self.config, ..Self::default() };
    }

    /// Sets size and threshold of the buffer, and empties it.
    pub(crate) fn set_config(&mut self, config: u64) {
        let size = (config & buffer_config::SIZE).min(MAX_BUFFER_SIZE);
        *self = Self {
            base: self.base,
            config: config & buffer_config::THRESHOLD | size,
            ..Self::default()
        };
    }

    /// Notes that software has taken all before `tail`; anything but a place between tail and head changes nothing.
    pub(crate) fn set_tail(&mut self, tail: u64) {
        if (self.tail..=self.head).contains(&tail) {
            self.tail = tail;
        }
    }

    pub(crate) fn clear_fault(&mut self) {
        self.fault = false;
    }

    /// Returns how many samples the buffer holds at most.
    fn capacity(&self) -> u64 {
        (4096 << (self.config & buffer_config::SIZE)) / SAMPLE_BYTES
    }

    /// Returns true if the buffer is full of samples that wait for software.
    pub(crate) fn is_full(&self) -> bool {
        self.head.saturating_sub(self.tail) >= self.capacity()
    }

    /// Returns true if the buffer asks for software's attention when all before `head` is written.
    fn calls_at(&self, head: u64) -> bool {
        let threshold = field(self.config, buffer_config::THRESHOLD);
        let threshold = threshold.clamp(1, self.capacity());
        self.fault || head.saturating_sub(self.tail) >= threshold
    }

    /// Returns true if the threshold is reached, if only when what is on its way is written.
    pub(crate) fn will_call(&self) -> bool {
        self.calls_at(self.head)
    }

    /// Returns true if the threshold is reached by what is written.
    pub(crate) fn calls(&self) -> bool {
        self.calls_at(self.written())
    }

    fn written(&self) -> u64 {
        self.head.saturating_sub(self.waiting.len() as u64)
    }

    /// Takes a sample; not while [full](Self::is_full), or after a fault.
    pub(crate) fn push(&mut self, sample: Sample) {
        self.waiting.push_back(sample);
        self.head += 1;
    }

    /// Returns true if no sample is on its way.
    pub(crate) fn is_written(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes the next sample that is to be written, and its physical address.
    pub(crate) fn take(&mut self) -> Option<(u64, Sample)> {
        let slot = self.written() % self.capacity();
        let sample = self.waiting.pop_front()?;
        Some((self.base.wrapping_add(slot * SAMPLE_BYTES), sample))
    }

    /// Notes that the sample that was taken last cannot be written; returns the samples that are lost with it.
    pub(crate) fn fail(&mut self) -> impl Iterator<Item = Sample> {
        self.fault = true;
        let lost = std::mem::take(&mut self.waiting);
        self.head = self.head.saturating_sub(lost.len() as u64 + 1);
        lost.into_iter()
    }
}
