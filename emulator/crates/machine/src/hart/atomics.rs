//! Atomic accesses. All of them need RAM and natural alignment.

use isa::{Exception, MemAccess, MemKind, TimingModel, Trap};

use super::memory::Value;
use super::{Env, Hart};
use crate::mmu::Access;

impl Hart {
    /// Reads memory at `va` and writes back what `update` makes of it. Gives what was read.
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
        self.reservation = Some((pa, value));
        Ok(V::from_u64(value))
    }

    /// True if the store was done. It is if memory still holds what load-reserved read: a store in
    /// between that left the value as it was goes unnoticed, as no program can tell.
    #[inline(always)]
    pub(crate) fn store_conditional<T: TimingModel, V: Value>(
        &mut self,
        env: &mut Env<'_, T>,
        va: u64,
        value: V,
    ) -> Result<bool, Trap> {
        let pa = self.atomic(env, va, V::SIZE as u8, MemKind::Store)?;
        let current = self.read_atomic::<T, V>(env, va, pa)?;
        let success = self.reservation.take() == Some((pa, current));
        if success {
            self.store_ram(env.bus, pa, V::SIZE as u8, value.to_u64());
        } else {
            *self.accesses.current() = MemAccess::default();
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
        let tlb = if access == Access::Load {
            &self.load_tlb
        } else {
            &self.store_tlb
        };
        if !va.is_multiple_of(u64::from(size)) {
            return Err(Trap {
                cause: misaligned,
                tval: va,
            });
        }
        let pa = match tlb.lookup(va, u64::from(size), self.rights) {
            Some(host) => (host as u64).wrapping_add(self.host_to_pa),
            None => {
                self.watch(va, size, access)?;
                let place = self.place(env, va, size, access)?;
                if !place.ram {
                    return Err(Trap {
                        cause: access.access_fault(),
                        tval: va,
                    });
                }
                place.pa
            }
        };
        *self.accesses.current() = MemAccess::new(kind, va, pa, size, false);
        Ok(pa)
    }

    #[inline(always)]
    fn read_atomic<T, V: Value>(&self, env: &Env<'_, T>, va: u64, pa: u64) -> Result<u64, Trap> {
        let fault = Trap {
            cause: Exception::StoreAccessFault,
            tval: va,
        };
        env.bus.ram.load(pa, V::SIZE as u8).ok_or(fault)
    }
}
