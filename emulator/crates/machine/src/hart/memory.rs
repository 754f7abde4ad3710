//! Data accesses: one comparison and a host pointer when all is well, everything else out of line.

use devices::{Bus, PageEventKind, RAM_BASE, Ram};
use isa::{
    Exception, Extension, FILTER_LINE_BITS, MemAccess, MemKind, PageWalk, Privilege, TimingModel,
    Trap,
};

use super::{Env, Hart, after};
use crate::csr::{envcfg, status};
use crate::mmu::{self, Access, EffectivePrivilege, Leaf, PageFeatures, WalkFault};

/// A value that memory holds, little-endian.
pub(crate) trait Value: Copy {
    const SIZE: u64 = size_of::<Self>() as u64;
    fn from_u64(value: u64) -> Self;
    /// Zero-extended.
    fn to_u64(self) -> u64;
    /// Between the host's byte order and memory's; the same both ways.
    fn little_endian(self) -> Self;
}

macro_rules! values {
    ($($type:ty)*) => {$(
        impl Value for $type {
            #[inline(always)]
            fn from_u64(value: u64) -> Self {
                value as Self
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                self.into()
            }
            #[inline(always)]
            fn little_endian(self) -> Self {
                self.to_le()
            }
        }
    )*};
}
values!(u8 u16 u32 u64);

/// A physical place in RAM or among the devices.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub pa: u64,
    pub ram: bool,
}

impl Hart {
    #[inline(always)]
    pub(crate) fn load<T: TimingModel, V: Value>(
        &mut self,
        env: &mut Env<'_, T>,
        va: u64,
        count: u64,
    ) -> Result<V, Trap> {
        let host = match self.host.load_tlb.lookup(va, V::SIZE, self.host.rights) {
            Some(host) => Some(host),
            None => self.load_behind(va, V::SIZE),
        };
        match host {
            Some(host) => {
                if T::TIMED {
                    self.note(va, host, V::SIZE, MemKind::Load);
                }
                if T::WARMS {
                    self.warm(env, (va, self.host.physical(host)), MemKind::Load);
                }
                // SAFETY: the TLB holds pointers into RAM only, is flushed when a run begins, and
                // the bus that owns RAM stays borrowed for the run; both lookups checked that all
                // bytes lie in the page that the entry was made for.
                Ok(unsafe { host.cast::<V>().read_unaligned() }.little_endian())
            }
            None => self.load_slow(env, va, V::SIZE as u8, count).map(V::from_u64),
        }
    }

    #[inline(always)]
    pub(crate) fn store<T: TimingModel, V: Value>(
        &mut self,
        env: &mut Env<'_, T>,
        va: u64,
        value: V,
        count: u64,
    ) -> Result<(), Trap> {
        match self.host.store_tlb.lookup(va, V::SIZE, self.host.rights) {
            Some(host) => {
                if T::TIMED {
                    self.note(va, host, V::SIZE, MemKind::Store);
                }
                if T::WARMS {
                    self.warm(env, (va, self.host.physical(host)), MemKind::Store);
                }
                // SAFETY: as in `load`. RAM is borrowed mutably for the run, and no reference
                // into it lives across the execution of an instruction.
                unsafe { host.cast::<V>().write_unaligned(value.little_endian()) };
                Ok(())
            }
            None => self.store_slow(env, va, V::SIZE as u8, value.to_u64(), count),
        }
    }

    /// Tells the timing model about an access through a host pointer.
    #[inline(always)]
    fn note(&mut self, va: u64, host: *mut u8, size: u64, kind: MemKind) {
        let pa = self.host.physical(host);
        *self.instruction.accesses.current() = MemAccess::new(kind, va, pa, size as u8, false);
    }

    /// Tells a model that keeps caches warm about an access to RAM, given by its virtual and physical address, unless the line is shown.
    #[inline(always)]
    pub(super) fn warm<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        (va, pa): (u64, u64),
        kind: MemKind,
    ) {
        let is_shown = env.timing.line_filters().is_some_and(|filters| {
            let filter = if kind == MemKind::Load { filters.loads } else { filters.stores };
            filter.shows(pa >> FILTER_LINE_BITS)
        });
        if !is_shown {
            let translated =
                self.host.data_privilege != Privilege::Machine && self.arch.csrs.satp.levels() != 0;
            let access = MemAccess::new(kind, va, pa, 8, false);
            env.timing.warm_access(&access, translated);
        }
    }

    /// Returns whether an instruction of a run has to wait for the hart's turn before it accesses RAM at a physical address. `count`: number of instructions
    /// that the hart has executed before.
    fn must_wait(&mut self, bus: &mut Bus, pa: u64, kind: MemKind, count: u64) -> bool {
        let in_run = self.instruction.run.is_none();
        // When a run begins is known, and not when its later instructions are decoded.
        let is_in_order = self.turns.run_is_in_order && count == self.progress.count;
        let must_wait = in_run
            && self.turns.in_turns
            && !is_in_order
            && bus.ram.must_wait(self.id, pa, kind == MemKind::Store);
        if must_wait {
            self.turns.awaits_turn = true;
            self.turns.awaited_line = Some((pa, kind == MemKind::Store));
        }
        must_wait
    }

    /// Returns whether an instruction of a run has to wait for the hart's turn before it accesses a place in RAM. An access to a device waits outside the
    /// run.
    fn must_wait_for(&mut self, bus: &mut Bus, place: Place, kind: MemKind, count: u64) -> bool {
        self.turns.awaits_turn |= self.turns.in_turns && !place.ram;
        place.ram && self.must_wait(bus, place.pa, kind, count)
    }

    /// Notes the first accesses that the timing model got last: which lines they are to, if the hart takes turns with others. `is_atomic`: they are those of
    /// an atomic instruction.
    pub(super) fn note_lines(&mut self, bus: &mut Bus, accesses: usize, is_atomic: bool) {
        let mut last = None;
        for access in &self.instruction.accesses.accesses[..accesses] {
            if access.mmio() || access.kind() == MemKind::None {
                continue;
            }
            let (pa, writes) = (access.pa(), access.kind() != MemKind::Load);
            if bus.ram.accessed(self.id, pa, writes, is_atomic) {
                bus.ram.log_page_event(pa, PageEventKind::SlowAccesses, self.id);
                self.host.slow_accesses_to(pa);
            }
            last = Some(pa);
        }
        if let Some(pa) = last {
            bus.ram.accessed_last(self.id, pa);
        }
    }

    /// Host address of a load that misses the first level of the TLB.
    #[cold]
    #[inline(never)]
    fn load_behind(&mut self, va: u64, size: u64) -> Option<*mut u8> {
        self.host.load_tlb.lookup_second_level(va, size, self.host.rights)
    }

    /// A load that misses the TLB, crosses a page's end, or is for a device.
    #[cold]
    #[inline(never)]
    fn load_slow<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        va: u64,
        size: u8,
        count: u64,
    ) -> Result<u64, Trap> {
        let fault = Trap { cause: Exception::LoadAccessFault, tval: va };
        if T::TIMED
            && let Some(host) = self.host.contended_loads.lookup(va, size.into(), self.host.rights)
            && env.bus.ram.has_contended_lines(self.host.physical(host))
        {
            let pa = self.host.physical(host);
            if self.must_wait(env.bus, pa, MemKind::Load, count) {
                return Err(fault);
            }
            self.note(va, host, size.into(), MemKind::Load);
            return env.bus.ram.load(pa, size).ok_or(fault);
        }
        self.watch(va, size, Access::Load)?;
        let (place, second) = self.places(env, va, size, Access::Load)?;
        *self.instruction.accesses.current() =
            MemAccess::new(MemKind::Load, va, place.pa, size, !place.ram);
        if T::TIMED && self.must_wait_for(env.bus, place, MemKind::Load, count) {
            return Err(fault);
        }
        if T::WARMS && place.ram {
            self.warm(env, (va, place.pa), MemKind::Load);
        }
        if let Some((second, first_size)) = second {
            // Both are RAM.
            let low = env.bus.ram.load(place.pa, first_size).ok_or(fault)?;
            let high = env.bus.ram.load(second.pa, size - first_size).ok_or(fault)?;
            return Ok(low | high << (8 * first_size));
        }
        if place.ram {
            return env.bus.ram.load(place.pa, size).ok_or(fault);
        }
        if self.instruction.run.is_none() {
            return Err(fault);
        }
        self.device_access(env, count);
        env.bus.load(place.pa, size).map_err(|_| fault)
    }

    #[cold]
    #[inline(never)]
    fn store_slow<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        va: u64,
        size: u8,
        value: u64,
        count: u64,
    ) -> Result<(), Trap> {
        if let Some(host) =
            self.host.store_tlb.lookup_second_level(va, size.into(), self.host.rights)
        {
            let pa = self.host.physical(host);
            if T::TIMED {
                self.note(va, host, size.into(), MemKind::Store);
            }
            if T::WARMS {
                self.warm(env, (va, pa), MemKind::Store);
            }
            self.store_ram(env.bus, pa, size, value);
            return Ok(());
        }
        let fault = Trap { cause: Exception::StoreAccessFault, tval: va };
        if T::TIMED
            && let Some(host) = self.host.contended_stores.lookup(va, size.into(), self.host.rights)
            && env.bus.ram.has_contended_lines(self.host.physical(host))
            && env.bus.ram.page_flags(self.host.physical(host)) & Ram::WATCHED == 0
        {
            let pa = self.host.physical(host);
            if self.must_wait(env.bus, pa, MemKind::Store, count) {
                return Err(fault);
            }
            self.note(va, host, size.into(), MemKind::Store);
            self.store_ram(env.bus, pa, size, value);
            return Ok(());
        }
        self.watch(va, size, Access::Store)?;
        let (place, second) = self.places(env, va, size, Access::Store)?;
        *self.instruction.accesses.current() =
            MemAccess::new(MemKind::Store, va, place.pa, size, !place.ram);
        if T::TIMED && self.must_wait_for(env.bus, place, MemKind::Store, count) {
            return Err(fault);
        }
        if self.instruction.run.is_none() {
            // In a run, a store that may overwrite code or goes to a device fails, and is executed again outside the run: what follows it may have to
            // be decoded anew.
            let watched = |pa| env.bus.ram.page_flags(pa) & Ram::WATCHED != 0;
            let plain = |place: &Place| place.ram && !watched(place.pa);
            if !plain(&place) || second.is_some_and(|(second, _)| !plain(&second)) {
                return Err(fault);
            }
        }
        if T::WARMS && place.ram {
            self.warm(env, (va, place.pa), MemKind::Store);
        }
        if let Some((second, first_size)) = second {
            self.store_ram(env.bus, place.pa, first_size, value);
            self.store_ram(env.bus, second.pa, size - first_size, value >> (8 * first_size));
        } else if place.ram {
            self.store_ram(env.bus, place.pa, size, value);
        } else {
            self.device_access(env, count);
            env.bus.store(place.pa, size, value).map_err(|_| fault)?;
        }
        Ok(())
    }

    /// Translates and checks an access. If it crosses the end of a page, the second value is the
    /// place of its rest and the size of its first part. Nothing was accessed if it fails.
    fn places<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        va: u64,
        size: u8,
        access: Access,
    ) -> Result<(Place, Option<(Place, u8)>), Trap> {
        let in_page = 0x1000 - (va & 0xfff);
        if u64::from(size) <= in_page {
            return Ok((self.place(env, va, size, access)?, None));
        }
        let first_size = in_page as u8;
        let rest = va.wrapping_add(in_page);
        let first = self.place(env, va, first_size, access)?;
        let second = self.place(env, rest, size - first_size, access)?;
        // Devices take aligned accesses only.
        for (place, va) in [(first, va), (second, rest)] {
            if !place.ram {
                return Err(Trap { cause: access.access_fault(), tval: va });
            }
        }
        Ok((first, Some((second, first_size))))
    }

    /// The place of an access within one page; the page gets a TLB entry where that is possible.
    pub(crate) fn place<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        va: u64,
        size: u8,
        access: Access,
    ) -> Result<Place, Trap> {
        let fault = |cause| Trap { cause, tval: va };
        let privilege = self.host.data_privilege;
        let (leaf, _) = self.translate(env, va, access, privilege).map_err(fault)?;
        let pa = leaf.pa;
        let size = u64::from(size);
        if pa >> 56 != 0 || !self.arch.pmp.allows(pa, size, access, privilege) {
            return Err(fault(access.access_fault()));
        }
        let ram = env.bus.ram.contains(pa, size);
        if !ram {
            return Ok(Place { pa, ram });
        }
        env.timing.touch_page(pa, access == Access::Store);
        let slow_path = access == Access::Store && env.bus.ram.stores_need_slow_path(pa, self.id);
        let page = pa & !0xfff;
        let is_contended = T::TIMED && self.turns.in_turns && env.bus.ram.has_contended_lines(pa);
        if (!slow_path || is_contended)
            && !self.watches_page(va)
            && self.arch.pmp.allows_page(page, access, privilege) == Some(true)
        {
            let host = env.bus.ram.as_mut_ptr().wrapping_add((page - RAM_BASE) as usize);
            let tlb = match (access, is_contended) {
                (Access::Store, false) => &mut self.host.store_tlb,
                (Access::Store, true) => &mut self.host.contended_stores,
                (Access::Load | Access::Fetch, false) => &mut self.host.load_tlb,
                (Access::Load | Access::Fetch, true) => &mut self.host.contended_loads,
            };
            tlb.insert(va, self.host.rights, host);
            self.host.superpages.note(va, leaf.page_bits);
        }
        Ok(Place { pa, ram })
    }

    /// Translates `va` for an access in `privilege`, and tells the timing model what was read for it. The second value
    /// is false if translation is off.
    pub(crate) fn translate<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        va: u64,
        access: Access,
        privilege: Privilege,
    ) -> Result<(Leaf, bool), Exception> {
        let satp = self.arch.csrs.satp;
        if privilege == Privilege::Machine || satp.levels() == 0 {
            return Ok((mmu::bare(va), false));
        }
        let mut read = PageWalk::default();
        let leaf = mmu::walk(satp, self.page_features(), va, |pa| {
            if (T::TIMED || T::WARMS)
                && let Some(entry) = read.pte.get_mut(usize::from(read.levels))
            {
                *entry = pa;
                read.levels += 1;
            }
            let allowed = self.arch.pmp.allows(pa, 8, Access::Load, Privilege::Supervisor);
            env.bus.ram.load(pa, 8).filter(|_| allowed)
        });
        if T::TIMED || T::WARMS {
            read.page_bits = leaf.as_ref().map_or(12, |leaf| leaf.page_bits);
            env.timing.translated(va, &read);
        }
        let by = EffectivePrivilege {
            user: privilege == Privilege::User,
            sum: self.arch.csrs.mstatus & status::SUM != 0,
            mxr: self.arch.csrs.mstatus & status::MXR != 0,
        };
        match leaf {
            Ok(leaf) if mmu::permits(leaf.pte, access, by) => Ok((leaf, true)),
            Ok(leaf) if self.arch.csrs.menvcfg & envcfg::ADUE != 0 => {
                // Not modelled: the time of this write.
                let pte = mmu::accessed(leaf.pte, access);
                if !mmu::permits(pte, access, by) {
                    return Err(access.page_fault());
                }
                if !self.arch.pmp.allows(leaf.at, 8, Access::Store, Privilege::Supervisor) {
                    return Err(access.access_fault());
                }
                self.store_ram(env.bus, leaf.at, 8, pte);
                Ok((Leaf { pte, ..leaf }, true))
            }
            Ok(_) | Err(WalkFault::Page) => Err(access.page_fault()),
            Err(WalkFault::Access) => Err(access.access_fault()),
        }
    }

    /// What page-table entries may say beyond the base specification.
    pub(super) fn page_features(&self) -> PageFeatures {
        PageFeatures {
            napot: self.extensions.has(Extension::Svnapot),
            types: self.arch.csrs.menvcfg & envcfg::PBMTE != 0,
        }
    }

    /// Stores to RAM for the hart, past the TLB: the page may hold code or a reservation, or be watched.
    pub(crate) fn store_ram(&mut self, bus: &mut Bus, pa: u64, size: u8, value: u64) {
        let flags = bus.ram.page_flags(pa);
        debug_assert!(bus.ram.contains(pa, u64::from(size)));
        let host = bus.ram.as_mut_ptr().wrapping_add((pa - RAM_BASE) as usize);
        let bytes = value.to_le_bytes();
        // SAFETY: callers have checked that `size` bytes at `pa` are RAM and in one page, and
        // `size` is at most 8. `Ram::store` would do, but counts as a device's write.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), host, usize::from(size)) };
        if flags & Ram::HAS_CODE != 0 && self.decoded.code.stored(pa, u64::from(size), &mut bus.ram)
        {
            // The store may have emptied the slot of its own instruction: the loop must not look at that again.
            self.deadlines.afterwards(after::DEVICE);
        }
        if flags & Ram::RESERVED != 0 {
            bus.ram.stored_by(self.id, pa, size.into());
        }
        if flags & Ram::WATCHED != 0 {
            bus.watched_store(pa);
            self.deadlines.afterwards(after::DEVICE);
        }
    }

    /// Prepares an access to a device: the device sees the current cycle, and interrupt lines are looked at after the access.
    fn device_access<T: TimingModel>(&mut self, env: &mut Env<'_, T>, count: u64) {
        env.bus.now = env.bus.now.max(self.now(env, count));
        self.deadlines.afterwards(after::DEVICE);
    }
}
