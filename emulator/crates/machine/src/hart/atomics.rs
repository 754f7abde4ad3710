//! Atomic accesses. All of them need RAM and natural alignment.

use devices::Ram;
use isa::{Exception, MemAccess, MemKind, TimingModel, Trap};

use super::memory::Value;
use super::{Env, Hart};
use crate::mmu::Access;

/// Instructions that a reservation lasts from the end of the turn in which it was made. A constrained sequence has at most
/// 16 (unprivileged specification, "Eventual Success of Store-Conditional Instructions"); one that is never used would
/// slow down other harts' stores to its page.
const LASTS: u64 = 64;

/// What load-reserved read, until store-conditional. Whether it still holds, [`devices::Ram`] knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reservation {
    pa: u64,
    value: u64,
    /// Value of [`Progress::count`](super::arch::Progress::count) beyond which the reservation is dropped; 0 until the turn in which it was made is
    /// over.
    ends: u64,
}

snapshot::snapshot!(Reservation { pa, value, ends });

impl Reservation {
    fn new(pa: u64, value: u64) -> Self {
        Self { pa, value, ends: 0 }
    }
}

impl Hart {
    /// Makes the hart's reservation known to others, before a run.
    pub(super) fn resume_reservation(&mut self, ram: &mut Ram) {
        self.heed_lost_reservation(ram);
        match self.arch.reservation {
            Some(reservation) => ram.reserve(self.id, reservation.pa),
            None => _ = ram.release(self.id),
        }
        ram.publish_reservation(self.id);
    }

    /// Drops a reservation that was lost. Between runs, the hart itself knows whether it has one.
    pub(super) fn heed_lost_reservation(&mut self, ram: &mut Ram) {
        if ram.lost_reservation(self.id) {
            ram.release(self.id);
            self.arch.reservation = None;
        }
    }

    /// Keeps the reservation at the end of the hart's turn, unless it has lasted too long or the hart sleeps.
    pub(super) fn keep_reservation(&mut self, ram: &mut Ram) {
        self.heed_lost_reservation(ram);
        if !ram.is_shared() {
            return;
        }
        if let Some(Reservation { ends, .. }) = &mut self.arch.reservation {
            let over = *ends != 0 && self.progress.count > *ends;
            if over || self.arch.waiting {
                self.arch.reservation = None;
                ram.release(self.id);
            } else if *ends == 0 {
                *ends = self.progress.count + LASTS;
            }
        }
        ram.publish_reservation(self.id);
    }

    /// Reads memory at `va` and writes back what `update` makes of it. Returns what was read.
    #[inline(always)]
    pub(crate) fn modify<T: TimingModel, V: Value>(
        &mut self,
        env: &mut Env<'_, T>,
        va: u64,
        update: impl FnOnce(V) -> V,
    ) -> Result<V, Trap> {
        let pa = self.atomic(env, va, V::SIZE as u8, MemKind::Amo)?;
        let old = V::from_u64(self.read_atomic::<T, V>(env, va, pa)?);
        self.store_ram(env.bus, pa, V::SIZE as u8, update(old).to_u64());
        Ok(old)
    }

    /// Writes `new` over 16 bytes at `va` that hold `expected`. Gives what they held.
    pub(crate) fn modify_pair<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        va: u64,
        expected: [u64; 2],
        new: [u64; 2],
    ) -> Result<[u64; 2], Trap> {
        let pa = self.atomic(env, va, 16, MemKind::Amo)?;
        let low = self.read_atomic::<T, u64>(env, va, pa)?;
        let high = self.read_atomic::<T, u64>(env, va, pa + 8)?;
        if [low, high] == expected {
            self.store_ram(env.bus, pa, 8, new[0]);
            self.store_ram(env.bus, pa + 8, 8, new[1]);
        }
        Ok([low, high])
    }

    #[inline(always)]
    pub(crate) fn load_reserved<T: TimingModel, V: Value>(
        &mut self,
        env: &mut Env<'_, T>,
        va: u64,
    ) -> Result<V, Trap> {
        let pa = self.atomic(env, va, V::SIZE as u8, MemKind::Load)?;
        let value = self.read_atomic::<T, V>(env, va, pa)?;
        self.arch.reservation = Some(Reservation::new(pa, value));
        env.bus.ram.reserve(self.id, pa);
        Ok(V::from_u64(value))
    }

    /// True if the store was done: the hart holds a reservation for this very address. A store of its own in between
    /// that changed the value makes it fail, too, as it may, and as QEMU has it.
    #[inline(always)]
    pub(crate) fn store_conditional<T: TimingModel, V: Value>(
        &mut self,
        env: &mut Env<'_, T>,
        va: u64,
        value: V,
    ) -> Result<bool, Trap> {
        let pa = self.atomic(env, va, V::SIZE as u8, MemKind::Store)?;
        let current = self.read_atomic::<T, V>(env, va, pa)?;
        let held = env.bus.ram.release(self.id);
        let reserved = self.arch.reservation.take().filter(|_| held);
        let success = reserved.is_some_and(|r| (r.pa, r.value) == (pa, current));
        if success {
            self.store_ram(env.bus, pa, V::SIZE as u8, value.to_u64());
        } else {
            *self.instruction.accesses.current() = MemAccess::default();
        }
        Ok(success)
    }

    /// Physical address of an atomic access.
    #[inline(never)]
    fn atomic<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        va: u64,
        size: u8,
        kind: MemKind,
    ) -> Result<u64, Trap> {
        let (access, misaligned) = match kind {
            MemKind::Load => (Access::Load, Exception::LoadMisaligned),
            _ => (Access::Store, Exception::StoreMisaligned),
        };
        let tlb = if access == Access::Load { &self.host.load_tlb } else { &self.host.store_tlb };
        if !va.is_multiple_of(u64::from(size)) {
            return Err(Trap { cause: misaligned, tval: va });
        }
        let pa = match tlb.lookup(va, u64::from(size), self.host.rights) {
            Some(host) => self.host.physical(host),
            None => {
                self.watch(va, size, access)?;
                let place = self.place(env, va, size, access)?;
                if !place.ram {
                    return Err(Trap { cause: access.access_fault(), tval: va });
                }
                place.pa
            }
        };
        *self.instruction.accesses.current() = MemAccess::new(kind, va, pa, size, false);
        if T::WARMS {
            self.warm(env, (va, pa), kind);
        }
        Ok(pa)
    }

    #[inline(always)]
    fn read_atomic<T, V: Value>(&self, env: &Env<'_, T>, va: u64, pa: u64) -> Result<u64, Trap> {
        let fault = Trap { cause: Exception::StoreAccessFault, tval: va };
        env.bus.ram.load(pa, V::SIZE as u8).ok_or(fault)
    }
}
