//! Performance counters: `mcycle` and `minstret` with mode filtering (Smcntrpmf 1.0), and the programmable ones
//! with overflow interrupts and mode filtering (Sscofpmf 1.0).

use isa::{PerfEvent, Privilege};

/// Number of programmable counters: `mhpmcounter3` to `mhpmcounter31`.
const PROGRAMMABLE: usize = 29;

/// `mhpmevent` bits; `mcyclecfg` and `minstretcfg` have the three that filter.
const OF: u64 = 1 << 63;
pub(crate) const MINH: u64 = 1 << 62;
const SINH: u64 = 1 << 61;
const UINH: u64 = 1 << 60;
/// The low half selects [events](PerfEvent::selected).
const SELECTOR: u64 = 0xffff_ffff;
/// VSINH and VUINH read as zero: there is no hypervisor extension.
const FILTER: u64 = MINH | SINH | UINH;
const EVENT_WRITE: u64 = OF | FILTER | SELECTOR;

/// No event occurs more often in a cycle: bounds how soon a counter can overflow.
const EVENTS_PER_CYCLE: u64 = 8;

/// A fixed counter: a raw total since reset plus an offset, or a frozen value while it stands.
#[derive(Clone, Debug, Default)]
struct Fixed {
    offset: u64,
    frozen: Option<u64>,
    /// `mcyclecfg` or `minstretcfg`.
    filter: u64,
}

impl Fixed {
    fn read(&self, total: u64) -> u64 {
        self.frozen.unwrap_or(total.wrapping_add(self.offset))
    }

    fn write(&mut self, value: u64, total: u64) {
        match &mut self.frozen {
            Some(frozen) => *frozen = value,
            None => self.offset = value.wrapping_sub(total),
        }
    }

    /// Counts, or stands, from here.
    fn run(&mut self, runs: bool, total: u64) {
        let value = self.read(total);
        self.frozen = (!runs).then_some(value);
        self.offset = value.wrapping_sub(total);
    }
}

#[derive(Clone, Debug, Default)]
struct Programmable {
    /// Count at the time of `snapshot`.
    value: u64,
    /// `mhpmevent`.
    event: u64,
    /// Total of the event when `value` was last brought up to date.
    snapshot: u64,
    /// It counts: event chosen, not inhibited, privilege not filtered.
    running: bool,
}

/// All counters of a hart.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    inhibit: u64,
    cycle: Fixed,
    instret: Fixed,
    programmable: [Programmable; PROGRAMMABLE],
    /// Which counters run depends on the privilege.
    filtered: bool,
    /// Some counter is running, or would in another privilege.
    enabled: bool,
}

snapshot::snapshot!(Fixed {
    offset,
    frozen,
    filter
});
snapshot::snapshot!(Programmable {
    value,
    event,
    snapshot,
    running
});
snapshot::snapshot!(Counters {
    inhibit,
    cycle,
    instret,
    programmable,
    filtered,
    enabled
});

/// Where raw totals since reset come from.
pub(crate) trait Totals {
    fn total(&self, event: PerfEvent) -> u64;
}

impl<F: Fn(PerfEvent) -> u64> Totals for F {
    fn total(&self, event: PerfEvent) -> u64 {
        self(event)
    }
}

impl Counters {
    pub fn new() -> Self {
        Self {
            inhibit: 0,
            cycle: Fixed::default(),
            instret: Fixed::default(),
            programmable: std::array::from_fn(|_| Programmable::default()),
            filtered: false,
            enabled: false,
        }
    }

    /// Reads counter `index` (0 cycle, 2 instret, 3 to 31 programmable).
    pub fn read(&self, index: usize, totals: &impl Totals) -> u64 {
        match index {
            0 => self.cycle.read(totals.total(PerfEvent::Cycles)),
            2 => self.instret.read(totals.total(PerfEvent::Instructions)),
            _ => self.programmable[index - 3].count(totals),
        }
    }

    /// Writes counter `index`.
    pub fn write(&mut self, index: usize, value: u64, totals: &impl Totals) {
        match index {
            0 => self.cycle.write(value, totals.total(PerfEvent::Cycles)),
            2 => self
                .instret
                .write(value, totals.total(PerfEvent::Instructions)),
            _ => {
                let counter = &mut self.programmable[index - 3];
                counter.value = value;
                counter.snapshot = counter.total(totals);
            }
        }
    }

    /// Reads `mhpmevent<index>`.
    pub fn event(&self, index: usize) -> u64 {
        self.programmable[index - 3].event
    }

    /// Writes `mhpmevent<index>`; counts up to now belong to the old event. The caller calls
    /// [`Self::sync`] before and [`Self::set_privilege`] after.
    pub fn set_event(&mut self, index: usize, value: u64, totals: &impl Totals) {
        let counter = &mut self.programmable[index - 3];
        counter.event = value & EVENT_WRITE;
        counter.snapshot = counter.total(totals);
    }

    /// Reads `mcountinhibit`.
    pub fn inhibit(&self) -> u64 {
        self.inhibit
    }

    /// Writes `mcountinhibit`. The caller brackets it as for [`Self::set_event`].
    pub fn set_inhibit(&mut self, value: u64) {
        self.inhibit = value & 0xffff_fffd;
    }

    /// Reads `mcyclecfg` (0) or `minstretcfg` (2).
    pub fn filter(&self, index: usize) -> u64 {
        match index {
            0 => self.cycle.filter,
            _ => self.instret.filter,
        }
    }

    /// Writes `mcyclecfg` (0) or `minstretcfg` (2). The caller brackets it as for [`Self::set_event`].
    pub fn set_filter(&mut self, index: usize, value: u64) {
        match index {
            0 => self.cycle.filter = value & FILTER,
            _ => self.instret.filter = value & FILTER,
        }
    }

    /// `scountovf`: the OF bits of all counters.
    pub fn overflows(&self) -> u64 {
        let set = |(i, c): (usize, &Programmable)| (c.event >> 63) << (i + 3);
        self.programmable
            .iter()
            .enumerate()
            .map(set)
            .fold(0, |all, bit| all | bit)
    }

    /// True if a change of privilege must go through [`Self::sync`] and [`Self::set_privilege`].
    pub fn filtered(&self) -> bool {
        self.filtered
    }

    /// True if some programmable counter counts, at least in some privilege.
    pub fn any_enabled(&self) -> bool {
        self.enabled
    }

    /// Brings running counters up to date. True if one of them overflowed with OF clear, which sets
    /// OF and requests the interrupt.
    pub fn sync(&mut self, totals: &impl Totals) -> bool {
        let mut interrupt = false;
        for counter in self
            .programmable
            .iter_mut()
            .filter(|c| c.event & SELECTOR != 0)
        {
            let total = counter.total(totals);
            if counter.running {
                let counted = total.wrapping_sub(counter.snapshot);
                let (value, overflow) = counter.value.overflowing_add(counted);
                counter.value = value;
                if overflow && counter.event & OF == 0 {
                    counter.event |= OF;
                    interrupt = true;
                }
            }
            counter.snapshot = total;
        }
        interrupt
    }

    /// Counts on from here with totals of another origin.
    pub fn rebase(&mut self, totals: &impl Totals) {
        for counter in &mut self.programmable {
            counter.snapshot = counter.total(totals);
        }
    }

    /// Decides anew which counters run, for the privilege from now on.
    pub fn set_privilege(&mut self, privilege: Privilege, totals: &impl Totals) {
        let filter = match privilege {
            Privilege::Machine => MINH,
            Privilege::Supervisor => SINH,
            Privilege::User => UINH,
        };
        self.filtered = false;
        self.enabled = false;
        let fixed = [
            (&mut self.cycle, 0, PerfEvent::Cycles),
            (&mut self.instret, 2, PerfEvent::Instructions),
        ];
        for (counter, i, event) in fixed {
            let enabled = self.inhibit >> i & 1 == 0;
            counter.run(enabled && counter.filter & filter == 0, totals.total(event));
            self.filtered |= enabled && counter.filter != 0;
        }
        for (i, counter) in self.programmable.iter_mut().enumerate() {
            let enabled = counter.events().next().is_some() && self.inhibit >> (i + 3) & 1 == 0;
            let runs = enabled && counter.event & filter == 0;
            if runs && !counter.running {
                // While nothing is enabled, nobody brings it up to date.
                counter.snapshot = counter.total(totals);
            }
            counter.running = runs;
            self.filtered |= enabled && counter.event & FILTER != 0;
            self.enabled |= enabled;
        }
    }

    /// A cycle before which no running counter overflows, given that they are up to date at `now`;
    /// `u64::MAX` if none will. Exact for cycles.
    pub fn deadline(&self, now: u64) -> u64 {
        let mut deadline = u64::MAX;
        for counter in self
            .programmable
            .iter()
            .filter(|c| c.running && c.event & OF == 0)
        {
            // Zero has 2^64 to go: never.
            let Some(to_go) = (u64::MAX - counter.value).checked_add(1) else {
                continue;
            };
            let cycles = match counter.events().count() as u64 {
                1 if counter.events().eq([PerfEvent::Cycles]) => to_go,
                summed => (to_go / (EVENTS_PER_CYCLE * summed)).max(1),
            };
            deadline = deadline.min(now.saturating_add(cycles));
        }
        deadline
    }
}

impl Programmable {
    /// What it counts the sum of.
    fn events(&self) -> impl Iterator<Item = PerfEvent> + use<> {
        PerfEvent::selected((self.event & SELECTOR) as u32)
    }

    fn total(&self, totals: &impl Totals) -> u64 {
        let counts = self.events().map(|event| totals.total(event));
        counts.fold(0, u64::wrapping_add)
    }

    fn count(&self, totals: &impl Totals) -> u64 {
        let counted = self.total(totals).wrapping_sub(self.snapshot);
        if self.running {
            self.value.wrapping_add(counted)
        } else {
            self.value
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(cycles: u64) -> impl Totals {
        move |event| {
            if event == PerfEvent::Cycles {
                cycles
            } else {
                cycles / 2
            }
        }
    }

    #[test]
    fn fixed_counters_freeze_and_resume() {
        let mut counters = Counters::new();
        counters.write(0, 1000, &at(10));
        assert_eq!(counters.read(0, &at(15)), 1005);
        counters.set_inhibit(1);
        counters.set_privilege(Privilege::Machine, &at(20));
        assert_eq!(counters.read(0, &at(50)), 1010);
        counters.set_inhibit(0);
        counters.set_privilege(Privilege::Machine, &at(60));
        assert_eq!(counters.read(0, &at(61)), 1011);
    }

    #[test]
    fn fixed_counters_stand_in_filtered_privileges() {
        let mut counters = Counters::new();
        counters.set_filter(0, u64::MAX);
        assert_eq!(counters.filter(0), 7 << 60);
        counters.set_filter(0, SINH | MINH);
        counters.set_filter(2, UINH);
        counters.set_privilege(Privilege::Machine, &at(100));
        assert!(counters.filtered());
        assert!(!counters.any_enabled(), "nothing can overflow");
        counters.write(0, 1, &at(120));
        counters.set_privilege(Privilege::User, &at(140));
        assert_eq!(counters.read(0, &at(150)), 11);
        assert_eq!(counters.read(2, &at(150)), 70);
        counters.set_privilege(Privilege::Supervisor, &at(160));
        assert_eq!(counters.read(0, &at(200)), 21);
        assert_eq!(counters.read(2, &at(200)), 90);
        // What is inhibited needs no filter.
        counters.set_inhibit(5);
        counters.set_privilege(Privilege::Supervisor, &at(200));
        assert!(!counters.filtered());
        counters.set_privilege(Privilege::User, &at(300));
        assert_eq!(counters.read(0, &at(400)), 21);
    }

    #[test]
    fn filter_and_overflow() {
        let mut counters = Counters::new();
        counters.set_event(3, SINH | 1, &at(100));
        counters.write(3, 0u64.wrapping_sub(50), &at(100));
        counters.set_privilege(Privilege::User, &at(100));
        assert_eq!(counters.deadline(100), 150);
        assert!(!counters.sync(&at(130)));
        counters.set_privilege(Privilege::Supervisor, &at(130));
        assert_eq!(counters.deadline(130), u64::MAX);
        assert!(!counters.sync(&at(500)));
        counters.set_privilege(Privilege::User, &at(500));
        assert_eq!(counters.deadline(500), 520);
        assert!(counters.sync(&at(521)));
        assert_eq!(counters.overflows(), 1 << 3);
        assert_eq!(counters.read(3, &at(521)), 1);
        assert!(!counters.sync(&at(600)));
    }

    #[test]
    fn what_an_inhibited_counter_missed_is_not_counted_later() {
        let mut counters = Counters::new();
        counters.set_inhibit(u64::MAX);
        counters.set_event(3, 1, &at(0));
        counters.write(3, 7, &at(0));
        counters.set_privilege(Privilege::Machine, &at(0));
        assert!(!counters.any_enabled(), "nobody calls sync");
        counters.set_inhibit(0);
        counters.set_privilege(Privilege::Machine, &at(100));
        assert_eq!(counters.read(3, &at(140)), 47);
    }

    #[test]
    fn other_events_are_rearmed_conservatively() {
        let mut counters = Counters::new();
        counters.set_event(4, 2, &at(0));
        counters.write(4, 0u64.wrapping_sub(100), &at(0));
        counters.set_privilege(Privilege::Machine, &at(0));
        assert_eq!(counters.deadline(0), 12);
    }
}
