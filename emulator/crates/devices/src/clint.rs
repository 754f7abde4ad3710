//! Core-local interruptor in SiFive's layout: software interrupts, `mtime` and `mtimecmp`.

use crate::{AccessFault, Clock};

/// Size of the register window in bytes.
pub const CLINT_SIZE: u64 = 0x1_0000;
/// Maximum number of harts that the register window has room for.
pub(crate) const CLINT_MAX_HARTS: usize = 4095;

const MSIP_END: u64 = 0x4000;
const MTIME: u64 = 0xbff8;

#[derive(Clone, Copy)]
enum Register {
    Msip(usize),
    MtimeCmp(usize),
    Mtime,
}

impl Register {
    /// The register at `offset` and the byte of it that the access starts at.
    fn at(offset: u64) -> (Self, u64) {
        match offset {
            0..MSIP_END => (Self::Msip(offset as usize / 4), offset % 4),
            MSIP_END..MTIME => {
                (Self::MtimeCmp((offset - MSIP_END) as usize / 8), (offset - MSIP_END) % 8)
            }
            _ => (Self::Mtime, offset - MTIME),
        }
    }
}

struct Timer {
    msip: bool,
    mtimecmp: u64,
    /// First cycle at which `mtime` reaches `mtimecmp`.
    due: u64,
}

/// The registers of all harts.
pub struct Clint {
    clock: Clock,
    timers: Box<[Timer]>,
    /// What software added to `mtime` by writing to it, in ticks. `mtime` is taken as never
    /// wrapping around: at 10 MHz that is 58,000 years.
    adjustment: i128,
}

snapshot::snapshot!(Timer { msip, mtimecmp, due });
snapshot::snapshot!(Clint { timers, adjustment } keeps { clock });

impl Clint {
    /// A CLINT for `harts` harts with `mtime` = 0 at cycle 0 and no timer set.
    pub fn new(harts: usize, clock: Clock) -> Self {
        let timer = || Timer { msip: false, mtimecmp: u64::MAX, due: u64::MAX };
        let timers = (0..harts.min(CLINT_MAX_HARTS)).map(|_| timer()).collect();
        Self { clock, timers, adjustment: 0 }
    }

    /// `mtime` at `cycle`.
    #[inline]
    pub fn mtime(&self, cycle: u64) -> u64 {
        let ticks = self.clock.ticks(cycle);
        if self.adjustment == 0 {
            return ticks;
        }
        (i128::from(ticks) + self.adjustment).clamp(0, i128::from(u64::MAX)) as u64
    }

    /// First cycle at which `mtime` is at least `mtime`; `u64::MAX` if never.
    pub fn cycle_of_mtime(&self, mtime: u64) -> u64 {
        let ticks = i128::from(mtime) - self.adjustment;
        u64::try_from(ticks.max(0)).map_or(u64::MAX, |ticks| self.clock.cycle_of_ticks(ticks))
    }

    /// Level of a hart's software interrupt.
    #[inline]
    pub fn msip(&self, hart: usize) -> bool {
        self.timers.get(hart).is_some_and(|t| t.msip)
    }

    /// Level of a hart's timer interrupt at `cycle`.
    #[inline]
    pub fn mtip(&self, hart: usize, cycle: u64) -> bool {
        self.timers.get(hart).is_some_and(|t| t.due <= cycle && t.due != u64::MAX)
    }

    /// Earliest cycle after `now` at which a timer interrupt rises; `u64::MAX` if none.
    #[inline]
    pub fn next_event(&self, now: u64) -> u64 {
        self.timers.iter().map(|t| t.due).filter(|&due| due > now).min().unwrap_or(u64::MAX)
    }

    /// A load of 4 or 8 bytes.
    pub fn read(&self, offset: u64, size: u8, now: u64) -> Result<u64, AccessFault> {
        let (register, byte) = Register::at(offset);
        let value = match register {
            Register::Msip(hart) if size == 4 => u64::from(self.msip(hart)),
            Register::Msip(_) => return Err(AccessFault),
            Register::MtimeCmp(hart) => self.timers.get(hart).map_or(0, |t| t.mtimecmp),
            Register::Mtime => self.mtime(now),
        };
        match size {
            4 => Ok(value >> (8 * byte) & 0xffff_ffff),
            8 => Ok(value),
            _ => Err(AccessFault),
        }
    }

    /// A store of 4 or 8 bytes.
    pub fn write(
        &mut self,
        offset: u64,
        size: u8,
        value: u64,
        now: u64,
    ) -> Result<(), AccessFault> {
        let (register, byte) = Register::at(offset);
        let merge = |old: u64| match size {
            4 => {
                let shift = 8 * byte;
                Ok(old & !(0xffff_ffff << shift) | (value & 0xffff_ffff) << shift)
            }
            8 => Ok(value),
            _ => Err(AccessFault),
        };
        match register {
            Register::Msip(hart) if size == 4 => {
                if let Some(timer) = self.timers.get_mut(hart) {
                    timer.msip = value & 1 != 0;
                }
            }
            Register::Msip(_) => return Err(AccessFault),
            Register::MtimeCmp(hart) => {
                let old = self.timers.get(hart).map_or(0, |t| t.mtimecmp);
                let mtimecmp = merge(old)?;
                let due = self.cycle_of_mtime(mtimecmp);
                if let Some(timer) = self.timers.get_mut(hart) {
                    timer.mtimecmp = mtimecmp;
                    timer.due = due;
                }
            }
            Register::Mtime => {
                let mtime = merge(self.mtime(now))?;
                self.adjustment = i128::from(mtime) - i128::from(self.clock.ticks(now));
                for hart in 0..self.timers.len() {
                    self.timers[hart].due = self.cycle_of_mtime(self.timers[hart].mtimecmp);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTIMECMP0: u64 = 0x4000;

    fn clint() -> Clint {
        Clint::new(2, Clock::new(1000, 10))
    }

    #[test]
    fn software_interrupts_are_per_hart() {
        let mut clint = clint();
        clint.write(4, 4, 0xffff_ffff, 0).unwrap();
        assert!(!clint.msip(0) && clint.msip(1));
        assert_eq!(clint.read(4, 4, 0), Ok(1));
        assert_eq!(clint.read(0, 8, 0), Err(AccessFault));
        assert_eq!(clint.write(4 * 100, 4, 1, 0), Ok(()), "absent harts ignore writes");
        assert_eq!(clint.read(4 * 100, 4, 0), Ok(0));
    }

    #[test]
    fn timer_rises_at_the_first_cycle_of_its_tick() {
        let mut clint = clint();
        assert_eq!(clint.next_event(0), u64::MAX);
        clint.write(MTIMECMP0 + 8, 8, 7, 0).unwrap();
        assert_eq!(clint.next_event(0), 700);
        assert!(!clint.mtip(1, 699) && clint.mtip(1, 700) && !clint.mtip(0, 700));
        assert_eq!(clint.next_event(700), u64::MAX);
        assert_eq!(clint.read(MTIME, 8, 699), Ok(6));
    }

    #[test]
    fn halves() {
        let mut clint = clint();
        clint.write(MTIMECMP0, 4, 5, 0).unwrap();
        assert_eq!(clint.read(MTIMECMP0, 8, 0), Ok(0xffff_ffff_0000_0005));
        clint.write(MTIMECMP0 + 4, 4, 0, 0).unwrap();
        assert!(clint.mtip(0, 500));
        assert_eq!(clint.read(MTIMECMP0, 2, 0), Err(AccessFault));
    }

    #[test]
    fn setting_the_clock_moves_the_timers() {
        let mut clint = clint();
        clint.write(MTIMECMP0, 8, 100, 0).unwrap();
        clint.write(MTIME, 8, 95, 1000).unwrap();
        assert_eq!(clint.mtime(1000), 95);
        assert_eq!(clint.next_event(1000), 1500);
        clint.write(MTIME, 8, 0, 1000).unwrap();
        assert_eq!((clint.mtime(1000), clint.mtime(0)), (0, 0));
        assert_eq!(clint.next_event(1000), 11_000);
        clint.write(MTIME, 8, u64::MAX, 1000).unwrap();
        assert!(clint.mtip(0, 1000));
    }
}
