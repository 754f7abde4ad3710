//! Performance counters: `mcycle` and `minstret` with mode filtering (Smcntrpmf 1.0), and the programmable ones
//! with overflow interrupts and mode filtering (Sscofpmf 1.0).

use isa::{PerfEvent, Privilege, Selection, Watch};
use sampling_units::precise::Awaited;

/// Number of programmable counters: `mhpmcounter3` to `mhpmcounter31`.
const PROGRAMMABLE: usize = 29;

/// Bits of `mhpmevent`; `mcyclecfg` and `minstretcfg` have the three that filter.
const OF: u64 = 1 << 63;
pub(crate) const MINH: u64 = 1 << 62;
const SINH: u64 = 1 << 61;
const UINH: u64 = 1 << 60;
/// Bits that filter by privilege. VSINH and VUINH read as zero: there is no hypervisor extension.
const FILTER: u64 = MINH | SINH | UINH;

/// A fixed counter: a raw total since reset plus an offset, or a frozen value while it is stopped.
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

    /// Lets the counter run, or stops it, from here on.
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
    /// `mhpmevent` without what it selects: the filter and OF.
    event: u64,
    selection: Selection,
    /// Total of the selected events when `value` was last brought up to date.
    snapshot: u64,
    /// True while the counter counts: an event is chosen, the counter is not inhibited, and the privilege is not filtered.
    running: bool,
    /// True if the counter's overflows are recorded in memory; it then goes on from `reload`.
    recorded: bool,
    reload: u64,
}

/// Counters that overflowed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Overflows {
    /// Counters that set OF and request the interrupt, by bit (counter 3 is bit 3).
    pub interrupts: u32,
    /// Counters whose samples are to be recorded.
    pub recorded: Vec<Awaited>,
}

/// All counters of a hart.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    inhibit: u64,
    cycle: Fixed,
    instret: Fixed,
    programmable: [Programmable; PROGRAMMABLE],
    /// True if the privilege decides which counters run.
    filtered: bool,
    /// True if some programmable counter runs, or would in another privilege.
    enabled: bool,
    /// True if some counter's overflows are recorded.
    any_recorded: bool,
}

snapshot::snapshot!(Fixed { offset, frozen, filter });
snapshot::snapshot!(Programmable { value, event, selection, snapshot, running, recorded, reload });
snapshot::snapshot!(Counters {
    inhibit,
    cycle,
    instret,
    programmable,
    filtered,
    enabled,
    any_recorded
});

/// A source of raw totals since reset.
pub(crate) trait Totals {
    fn total(&self, event: PerfEvent) -> u64;

    /// Returns the total of a programmable counter (from 0) whose selection the timing model [follows](Selection::is_followed).
    fn selected(&self, counter: usize) -> u64;
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            inhibit: 0,
            cycle: Fixed::default(),
            instret: Fixed::default(),
            programmable: std::array::from_fn(|_| Programmable::default()),
            filtered: false,
            enabled: false,
            any_recorded: false,
        }
    }

    /// Reads counter `index` (0 cycle, 2 instret, 3 to 31 programmable).
    pub(crate) fn read(&self, index: usize, totals: &impl Totals) -> u64 {
        match index {
            0 => self.cycle.read(totals.total(PerfEvent::Cycles)),
            2 => self.instret.read(totals.total(PerfEvent::Instructions)),
            _ => self.programmable[index - 3].count(index - 3, totals),
        }
    }

    /// Writes counter `index`.
    pub(crate) fn write(&mut self, index: usize, value: u64, totals: &impl Totals) {
        match index {
            0 => self.cycle.write(value, totals.total(PerfEvent::Cycles)),
            2 => self.instret.write(value, totals.total(PerfEvent::Instructions)),
            _ => {
                let counter = &mut self.programmable[index - 3];
                counter.value = value;
                counter.snapshot = counter.total(index - 3, totals);
            }
        }
    }

    /// Reads `mhpmevent<index>`.
    pub(crate) fn event(&self, index: usize) -> u64 {
        let counter = &self.programmable[index - 3];
        counter.event | counter.selection.bits()
    }

    /// Writes `mhpmevent<index>`; counts up to now belong to the old event. The caller calls [`Self::sync`] before; after
    /// it, the caller gives what it returns to the timing model, if anything, and calls [`Self::set_privilege`].
    pub(crate) fn set_event(&mut self, index: usize, value: u64) -> Option<Selection> {
        let counter = &mut self.programmable[index - 3];
        let selection = Selection::new(value);
        let before = std::mem::replace(&mut counter.selection, selection);
        counter.event = value & (OF | FILTER);
        counter.running = false;
        (before.is_followed() || selection.is_followed()).then_some(selection)
    }

    /// Returns what the timing model has to be told: programmable counters (from 0) with what it is to follow for them.
    pub(crate) fn followed(&self) -> impl Iterator<Item = (usize, Selection)> + use<> {
        let selections = self.programmable.each_ref().map(|counter| counter.selection);
        let followed = selections.into_iter().enumerate();
        followed.filter(|(_, selection)| selection.is_followed())
    }

    /// Reads `mcountinhibit`.
    pub(crate) fn inhibit(&self) -> u64 {
        self.inhibit
    }

    /// Writes `mcountinhibit`. The caller brackets it as for [`Self::set_event`].
    pub(crate) fn set_inhibit(&mut self, value: u64) {
        self.inhibit = value & 0xffff_fffd;
    }

    /// Reads `mcyclecfg` (0) or `minstretcfg` (2).
    pub(crate) fn filter(&self, index: usize) -> u64 {
        match index {
            0 => self.cycle.filter,
            _ => self.instret.filter,
        }
    }

    /// Writes `mcyclecfg` (0) or `minstretcfg` (2). The caller brackets it as for [`Self::set_event`].
    pub(crate) fn set_filter(&mut self, index: usize, value: u64) {
        match index {
            0 => self.cycle.filter = value & FILTER,
            _ => self.instret.filter = value & FILTER,
        }
    }

    /// Returns `scountovf`: the OF bits of all counters.
    pub(crate) fn overflows(&self) -> u64 {
        let set = |(i, c): (usize, &Programmable)| (c.event >> 63) << (i + 3);
        self.programmable.iter().enumerate().map(set).fold(0, |all, bit| all | bit)
    }

    /// Returns whether a change of privilege must go through [`Self::sync`] and [`Self::set_privilege`].
    pub(crate) fn filtered(&self) -> bool {
        self.filtered
    }

    /// Returns whether some programmable counter counts, at least in some privilege.
    pub(crate) fn any_enabled(&self) -> bool {
        self.enabled
    }

    /// Returns what counter `index` goes on from after a recorded overflow.
    pub(crate) fn reload(&self, index: usize) -> u64 {
        self.programmable[index - 3].reload
    }

    /// Sets what counter `index` goes on from after a recorded overflow.
    pub(crate) fn set_reload(&mut self, index: usize, value: u64) {
        self.programmable[index - 3].reload = value;
    }

    /// Sets the counters, by bit, whose overflows are recorded in memory from now on.
    pub(crate) fn set_recorded(&mut self, mask: u32) {
        for (i, counter) in self.programmable.iter_mut().enumerate() {
            counter.recorded = mask >> (i + 3) & 1 != 0;
        }
        self.any_recorded = mask != 0;
    }

    /// Returns whether some counter's overflows are recorded.
    pub(crate) fn any_recorded(&self) -> bool {
        self.any_recorded
    }

    /// Brings running counters up to date. Overflows of counters with OF clear are recorded, if the counter's are and `room`
    /// suffices for one more sample; others set OF and request the interrupt. `attributed_wait`: counters of events that
    /// instructions incur stay as they are.
    pub(crate) fn sync(
        &mut self,
        totals: &impl Totals,
        mut room: u64,
        attributed_wait: bool,
    ) -> Overflows {
        let mut overflows = Overflows::default();
        for (i, counter) in self
            .programmable
            .iter_mut()
            .enumerate()
            .filter(|(_, c)| c.selection != Selection::default())
        {
            let selection = counter.selection;
            if attributed_wait && selection.is_attributable() && !selection.is_cycles() {
                continue;
            }
            let total = counter.total(i, totals);
            if counter.running {
                let counted = total.wrapping_sub(counter.snapshot);
                let (value, overflow) = counter.value.overflowing_add(counted);
                counter.value = value;
                if overflow && counter.event & OF == 0 {
                    if counter.recorded && room > 0 {
                        room -= 1;
                        let periods = counter.go_on();
                        let counter = i as u8 + 3;
                        overflows.recorded.push(Awaited { counter, periods });
                    } else {
                        counter.event |= OF;
                        overflows.interrupts |= 8 << i;
                    }
                }
            }
            counter.snapshot = total;
        }
        overflows
    }

    /// Returns, by programmable counter (from 0), what there is to watch while it runs. The counters are up to date.
    pub(crate) fn watches(&self) -> [Option<Watch>; PROGRAMMABLE] {
        self.programmable.each_ref().map(|counter| {
            let selection = counter.selection;
            // A counter that has overflowed does not do so again; zero has 2^64 to go.
            let to_go = match counter.event & OF {
                0 => (u64::MAX - counter.value).saturating_add(1),
                _ => u64::MAX,
            };
            let period = match counter.recorded && counter.event & OF == 0 {
                true => counter.period(),
                false => u64::MAX,
            };
            let watched = counter.running && selection.is_attributable();
            watched.then_some(Watch { selection, to_go, period })
        })
    }

    /// Returns a number of instructions that are executed before a watched counter overflows. Counters of cycles, which no
    /// instruction incurs, are left out.
    pub(crate) fn instructions_to_overflow(&self) -> u64 {
        let watches = self.watches().into_iter().flatten();
        let by_instruction = watches.filter(|watch| !watch.selection.is_cycles());
        let steps =
            by_instruction.map(|watch| watch.to_go / watch.selection.most_per_instruction());
        steps.min().map_or(u64::MAX, |steps| steps.max(1))
    }

    /// Returns what a counter (3 to 31) is set to.
    pub(crate) fn selection(&self, index: usize) -> Selection {
        self.programmable[index - 3].selection
    }

    /// Lets counters go on from here with totals of another origin.
    pub(crate) fn rebase(&mut self, totals: &impl Totals) {
        for (i, counter) in self.programmable.iter_mut().enumerate() {
            counter.snapshot = counter.total(i, totals);
        }
    }

    /// Decides anew which counters run in the privilege from now on.
    pub(crate) fn set_privilege(&mut self, privilege: Privilege, totals: &impl Totals) {
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
            let enabled =
                counter.selection.events().next().is_some() && self.inhibit >> (i + 3) & 1 == 0;
            let runs = enabled && counter.event & filter == 0;
            if runs && !counter.running {
                // While nothing is enabled, nobody brings the counter up to date.
                counter.snapshot = counter.total(i, totals);
            }
            counter.running = runs;
            self.filtered |= enabled && counter.event & FILTER != 0;
            self.enabled |= enabled;
        }
    }

    /// Returns a cycle before which no running counter overflows, given that they are up to date at `now`; `u64::MAX` if none
    /// will. Exact for cycles.
    pub(crate) fn deadline(&self, now: u64) -> u64 {
        let mut deadline = u64::MAX;
        for counter in self.programmable.iter().filter(|c| c.running && c.event & OF == 0) {
            // Zero has 2^64 to go: never.
            let Some(to_go) = (u64::MAX - counter.value).checked_add(1) else {
                continue;
            };
            let cycles = (to_go / counter.most_per_cycle()).max(1);
            deadline = deadline.min(now.saturating_add(cycles));
        }
        deadline
    }
}

impl Programmable {
    /// Returns the events between recorded overflows. From zero there are 2^64 to go.
    fn period(&self) -> u64 {
        match self.reload {
            0 => u64::MAX,
            reload => reload.wrapping_neg(),
        }
    }

    /// Sets the counter, which has overflowed, to where it goes on from `reload`, and returns how many periods are over.
    fn go_on(&mut self) -> u64 {
        let period = self.period();
        let beyond = self.value;
        self.value = self.reload.wrapping_add(beyond % period);
        beyond / period + 1
    }

    /// Returns the most that the counter counts in a cycle, on average.
    fn most_per_cycle(&self) -> u64 {
        let selection = self.selection;
        if selection.condition().is_some() || selection.events().eq([PerfEvent::Cycles]) {
            return 1;
        }
        let most = selection.events().map(PerfEvent::most_per_cycle);
        most.sum::<u64>().max(1)
    }

    /// Returns the total of the selected events; `index` is the programmable counter's number, from 0.
    fn total(&self, index: usize, totals: &impl Totals) -> u64 {
        let selection = self.selection;
        if selection.is_followed() {
            return totals.selected(index);
        }
        let counts = selection.events().map(|event| totals.total(event));
        counts.fold(0, u64::wrapping_add)
    }

    fn count(&self, index: usize, totals: &impl Totals) -> u64 {
        let counted = self.total(index, totals).wrapping_sub(self.snapshot);
        if self.running { self.value.wrapping_add(counted) } else { self.value }
    }
}

#[cfg(test)]
mod tests;
