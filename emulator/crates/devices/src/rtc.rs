//! Goldfish real-time clock: nanoseconds since 1970, with an alarm.
//!
//! The clock starts at a configured epoch and follows simulated time, so that two runs see the
//! same dates.

use crate::{AccessFault, Cx, Device};

/// Size of the register window in bytes.
pub const RTC_SIZE: u64 = 0x1000;

#[derive(Clone, Copy)]
enum Register {
    TimeLow,
    TimeHigh,
    AlarmLow,
    AlarmHigh,
    InterruptEnable,
    ClearAlarm,
    AlarmStatus,
    ClearInterrupt,
}

impl Register {
    fn at(offset: u64) -> Option<Self> {
        use Register::*;
        let all = [
            TimeLow,
            TimeHigh,
            AlarmLow,
            AlarmHigh,
            InterruptEnable,
            ClearAlarm,
            AlarmStatus,
            ClearInterrupt,
        ];
        all.get(usize::try_from(offset / 4).ok()?).copied()
    }
}

/// The clock.
pub struct Rtc {
    /// Time at cycle 0 in nanoseconds since 1970, modulo 2^64: it wraps below zero if the guest sets an early time.
    epoch: u64,
    /// High half of the last time that was read or is being written.
    time_high: u32,
    /// High half of the alarm that is being set.
    alarm_high: u32,
    alarm: Option<u64>,
    interrupt_enable: bool,
    pending: bool,
}

snapshot::snapshot!(Rtc { epoch, time_high, alarm_high, alarm, interrupt_enable, pending });

impl Rtc {
    /// A clock that shows `epoch_seconds` (Unix time) at reset.
    pub fn new(epoch_seconds: u64) -> Self {
        Self {
            epoch: epoch_seconds.saturating_mul(1_000_000_000),
            time_high: 0,
            alarm_high: 0,
            alarm: None,
            interrupt_enable: false,
            pending: false,
        }
    }

    fn time(&self, cx: &Cx<'_>) -> u64 {
        self.epoch.wrapping_add(cx.clock.nanos(cx.now))
    }

    /// Rings if the alarm is due, else schedules it.
    fn watch_alarm(&mut self, cx: &mut Cx<'_>) {
        let Some(alarm) = self.alarm else {
            return cx.schedule(u64::MAX);
        };
        if self.time(cx) >= alarm {
            (self.alarm, self.pending) = (None, true);
            cx.schedule(u64::MAX);
        } else {
            let cycle = cx.clock.cycle_of_nanos(alarm.wrapping_sub(self.epoch));
            // In the past only if the clock would wrap around before the alarm: such an alarm never rings.
            cx.schedule(if cycle > cx.now { cycle } else { u64::MAX });
        }
    }
}

impl Device for Rtc {
    fn read(&mut self, offset: u64, size: u8, cx: &mut Cx<'_>) -> Result<u64, AccessFault> {
        if size != 4 {
            return Err(AccessFault);
        }
        Ok(match Register::at(offset) {
            Some(Register::TimeLow) => {
                // Reading the low half latches the high one.
                let time = self.time(cx);
                self.time_high = (time >> 32) as u32;
                time & 0xffff_ffff
            }
            Some(Register::TimeHigh) => self.time_high.into(),
            Some(Register::AlarmLow) => self.alarm.unwrap_or(0) & 0xffff_ffff,
            Some(Register::AlarmHigh) => self.alarm.unwrap_or(0) >> 32,
            Some(Register::InterruptEnable) => self.interrupt_enable.into(),
            Some(Register::AlarmStatus) => self.alarm.is_some().into(),
            Some(Register::ClearAlarm | Register::ClearInterrupt) | None => 0,
        })
    }

    fn write(
        &mut self,
        offset: u64,
        size: u8,
        value: u64,
        cx: &mut Cx<'_>,
    ) -> Result<(), AccessFault> {
        if size != 4 {
            return Err(AccessFault);
        }
        match Register::at(offset) {
            Some(Register::TimeHigh) => self.time_high = value as u32,
            Some(Register::TimeLow) => {
                let time = u64::from(self.time_high) << 32 | value;
                self.epoch = time.wrapping_sub(cx.clock.nanos(cx.now));
                self.watch_alarm(cx);
            }
            Some(Register::AlarmHigh) => self.alarm_high = value as u32,
            Some(Register::AlarmLow) => {
                self.alarm = Some(u64::from(self.alarm_high) << 32 | value);
                self.watch_alarm(cx);
            }
            Some(Register::InterruptEnable) => self.interrupt_enable = value & 1 != 0,
            Some(Register::ClearAlarm) => {
                self.alarm = None;
                self.watch_alarm(cx);
            }
            Some(Register::ClearInterrupt) => self.pending = false,
            Some(Register::AlarmStatus) | None => {}
        }
        Ok(())
    }

    fn event(&mut self, cx: &mut Cx<'_>) {
        self.watch_alarm(cx);
    }

    fn irq_level(&self) -> bool {
        self.pending && self.interrupt_enable
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bus, Clock, memory_map};

    const BASE: u64 = memory_map::RTC.base;
    const EPOCH: u64 = 1_700_000_000;

    fn bus() -> Bus {
        let mut bus = Bus::new(1 << 20, 1, Clock::default()).unwrap();
        bus.add_device(BASE, RTC_SIZE, memory_map::RTC.first_source, Box::new(Rtc::new(EPOCH)))
            .unwrap();
        bus.store(crate::PLIC_BASE + 4 * 11, 4, 1).unwrap();
        bus.store(crate::PLIC_BASE + 0x2080, 4, 1 << 11).unwrap();
        bus
    }

    fn time(bus: &mut Bus) -> u64 {
        let low = bus.load(BASE, 4).unwrap();
        bus.load(BASE + 4, 4).unwrap() << 32 | low
    }

    #[test]
    fn time_is_the_epoch_plus_simulated_time() {
        let mut bus = bus();
        assert_eq!(time(&mut bus), EPOCH * 1_000_000_000);
        bus.now = 32;
        assert_eq!(time(&mut bus), EPOCH * 1_000_000_000 + 10);
        bus.store(BASE + 4, 4, 1).unwrap();
        bus.store(BASE, 4, 5).unwrap();
        bus.now = 64;
        assert_eq!(time(&mut bus), (1 << 32) + 15);
        assert_eq!(bus.load(BASE, 8), Err(AccessFault));
        assert_eq!(bus.load(BASE + 0x20, 4), Ok(0));
    }

    #[test]
    fn alarm_rings_at_its_cycle() {
        let mut bus = bus();
        let alarm = EPOCH * 1_000_000_000 + 1000;
        bus.store(BASE + 0x10, 4, 1).unwrap();
        bus.store(BASE + 0xc, 4, alarm >> 32).unwrap();
        bus.store(BASE + 0x8, 4, alarm).unwrap();
        assert_eq!((bus.load(BASE + 0x18, 4), bus.next_event()), (Ok(1), 3200));
        bus.advance(3200);
        assert_eq!(bus.mip(0), 1 << 9);
        assert_eq!((bus.load(BASE + 0x18, 4), bus.next_event()), (Ok(0), u64::MAX));
        bus.store(BASE + 0x1c, 4, 1).unwrap();
        assert_eq!(bus.load(crate::PLIC_BASE + 0x20_1004, 4), Ok(11));
        bus.store(crate::PLIC_BASE + 0x20_1004, 4, 11).unwrap();
        assert_eq!(bus.mip(0), 0);
    }

    #[test]
    fn alarm_in_the_past_and_cleared() {
        let mut bus = bus();
        bus.store(BASE + 0x10, 4, 1).unwrap();
        bus.store(BASE + 0x8, 4, 1).unwrap();
        assert_eq!(bus.mip(0), 1 << 9);
        bus.store(BASE + 0xc, 4, 0x2000_0000).unwrap();
        bus.store(BASE + 0x8, 4, 0).unwrap();
        assert_ne!(bus.next_event(), u64::MAX);
        bus.store(BASE + 0x14, 4, 0).unwrap();
        assert_eq!(bus.next_event(), u64::MAX);
    }
}
