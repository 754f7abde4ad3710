//! Somebody outside who looks at the guest's memory now and then, unseen by the guest.

use devices::Ram;
use isa::TimingModel;

use super::{Env, Hart};
use crate::csr::Csrs;
use crate::mmu::{self, PageFeatures};

/// What an onlooker sees: virtual memory of the process that runs.
pub struct GuestView<'a> {
    ram: &'a Ram,
    csrs: &'a Csrs,
    features: PageFeatures,
}

impl GuestView<'_> {
    /// Fills `bytes` from a virtual address, whatever the permissions of its pages; false if not all of them are mapped to RAM.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let (mut at, mut left) = (address, bytes);
        while !left.is_empty() {
            let in_page = (4096 - (at & 0xfff)) as usize;
            let (head, rest) = left.split_at_mut(in_page.min(left.len()));
            let read = |pa| self.ram.load(pa, 8);
            let pa = match self.csrs.satp.levels() {
                0 => Some(at),
                _ => mmu::walk(self.csrs.satp, self.features, at, read).ok().map(|leaf| leaf.pa),
            };
            if pa.and_then(|pa| self.ram.read(pa, head)).is_none() {
                return false;
            }
            at = at.wrapping_add(head.len() as u64);
            left = rest;
        }
        true
    }
}

/// Looks at the guest between instructions of timed runs.
pub trait Onlooker {
    /// Looks, and gives the number of instructions after which it wants to look again. What it gives to `note` is put into the stream there:
    /// side-band records of the simulator's own (type and bytes).
    fn look(&mut self, view: &GuestView<'_>, note: &mut dyn FnMut(u8, Vec<u8>)) -> u64;
}

impl Hart {
    /// Sets who looks at the guest in timed runs.
    pub fn set_onlooker(&mut self, onlooker: Option<Box<dyn Onlooker>>) {
        self.attachments.set_onlooker(onlooker);
    }

    /// Lets the onlooker look.
    #[cold]
    #[inline(never)]
    pub(super) fn look<T: TimingModel>(&mut self, env: &mut Env<'_, T>) {
        let Some(mut onlooker) = self.attachments.onlooker.take() else {
            self.attachments.look_at = u64::MAX;
            return;
        };
        let view =
            GuestView { ram: &env.bus.ram, csrs: &self.arch.csrs, features: self.page_features() };
        let timing = &mut *env.timing;
        let after = onlooker.look(&view, &mut |kind, bytes| timing.note(kind, bytes));
        self.attachments.look_at = self.progress.count.saturating_add(after.max(1));
        self.attachments.onlooker = Some(onlooker);
    }
}
