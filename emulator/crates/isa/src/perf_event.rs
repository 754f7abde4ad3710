//! The events that performance counters count: one row each, in `table.rs`. To add one, write a row there and its count in
//! `timing::Pipeline::count`, which does not compile without it.
//!
//! The low 32 bits of `mhpmevent` select. A selector below 32 is a code of the RISC-V performance events draft (v0.1.0) and names
//! one event. From 32 on its low byte is a set of the core's own events, as BOOM has them: bits 8 to 31 are a mask of the set's events,
//! and what is counted is their sum. Bits 32 to 41 can make it a count of [cycles](Condition).

mod selection;
#[macro_use]
mod rows;
mod sbi;
mod table;

pub use sbi::{SBI_EVENTS, SbiEvent};
pub use selection::{Condition, Selection};
pub use table::PerfEvent;

/// What the table says of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfEventRow {
    /// Name of the event: the draft's, or ours in its manner.
    pub name: &'static str,
    /// Topic that perf lists the event under.
    pub topic: &'static str,
    /// Description of the event, a sentence.
    pub description: &'static str,
    /// Low byte of the event's selector: the draft's code, or the number of its set.
    pub set: u8,
    /// Bit of the event in the set's mask.
    pub bit: u8,
    /// Where in the core the event is counted.
    pub stage: Stage,
    /// True if a counter of the event can have a [`Condition`], since it is known of each cycle how often the event occurs.
    pub per_cycle: bool,
}

/// Where in the core an event is counted. Before commit, an event is counted for instructions that then do not retire, too:
/// those that trap, and loads that are flushed for their order. Wrong paths are not simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nowhere: the event is time.
    Clock,
    /// The front end.
    Fetch,
    /// Decode and dispatch.
    Decode,
    /// Issue ports and units.
    Execute,
    /// Load/store unit, caches, TLBs, memory.
    Memory,
    /// The reorder buffer's head.
    Commit,
}

impl Stage {
    /// Returns the name of the stage.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Fetch => "fetch",
            Self::Decode => "decode",
            Self::Execute => "execute",
            Self::Memory => "memory",
            Self::Commit => "commit",
        }
    }

    /// Returns whether events are counted for instructions that do not retire, too.
    pub fn is_speculative(self) -> bool {
        !matches!(self, Self::Clock | Self::Commit)
    }
}

/// A selector of raw events: a code of the draft or a set of the core's own events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawSelector {
    /// The low byte of `mhpmevent`.
    pub set: u8,
    /// Bits 31 to 8 that name an event of the set; a code has none.
    pub mask: u32,
    /// The counters whose events can have a [`Condition`]; `None`: no counter of the set can.
    pub with_condition: Option<u32>,
}

/// Returns all codes and sets that name an event.
pub fn raw_selectors() -> impl Iterator<Item = RawSelector> {
    let mask = |set: u8, of: fn(&PerfEventRow) -> bool| {
        let own =
            PerfEvent::ALL.iter().filter(move |event| event.row().set == set && of(&event.row()));
        let all = own.map(|event| event.selector()).reduce(|all, bits| all | bits);
        all.map(|all| all & !0xff)
    };
    (0..=u8::MAX).filter_map(move |set| {
        Some(RawSelector {
            set,
            mask: mask(set, |_| true)?,
            with_condition: mask(set, |row| row.per_cycle),
        })
    })
}

/// First set of the core's own events; the draft's codes are below.
const FIRST_SET: u8 = 32;
/// Where a selector's mask begins, and how many bits it has.
const MASK_SHIFT: u32 = 8;
const MASK_BITS: u32 = 24;

impl PerfEvent {
    /// Returns the event's selector.
    pub fn selector(self) -> u32 {
        let PerfEventRow { set, bit, .. } = self.row();
        match set < FIRST_SET {
            true => set.into(),
            false => u32::from(set) | 1 << (MASK_SHIFT + u32::from(bit)),
        }
    }

    /// Returns whether the event is counted only while somebody asks for it. Such events are counted where instructions are decoded, issue or leave
    /// the ROB: see [`Selection::is_followed`].
    pub fn is_followed(self) -> bool {
        let row = self.row();
        match row.set {
            20..=24 | 38 => true,
            // TEA's events.
            41 => row.bit < 6,
            _ if self.is_of_issue() => true,
            _ => matches!(self, Self::RobOccupancy | Self::LoadQueueOccupancy),
        }
    }

    /// Returns whether the event is counted where micro-ops issue, and only while somebody asks for it.
    pub fn is_of_issue(self) -> bool {
        self.row().set == 47
    }

    /// Returns whether a sample of the event can name the instruction that it is due to (perf's `precise_ip`). That is not so
    /// for slots of decode, an occupancy, events of sampling, of which many are told at once, and cycles asleep or in which
    /// several commit.
    pub fn is_precise(self) -> bool {
        let row = self.row();
        !matches!(row.set, 20..=24 | 38 | 48)
            && !row.name.starts_with("OCCUPANCY")
            && !matches!(self, Self::CyclesIdle | Self::CyclesCommitting)
    }

    /// Returns the most that the event occurs in a cycle, on average: it bounds how soon a counter can overflow.
    pub fn most_per_cycle(self) -> u64 {
        match self.row().name.starts_with("OCCUPANCY") {
            true => 256,
            false => 8,
        }
    }

    /// Returns the events whose sum a selector names; if there are none, nothing is counted.
    pub fn selected(selector: u32) -> impl Iterator<Item = Self> {
        let set = selector as u8;
        let mask = match set < FIRST_SET {
            true => 1,
            false => selector >> MASK_SHIFT,
        };
        let mut rest = mask;
        std::iter::from_fn(move || {
            let bit = rest.trailing_zeros() as u8;
            rest &= rest.wrapping_sub(1);
            (u32::from(bit) < MASK_BITS).then_some(bit)
        })
        .filter_map(move |bit| Self::at(set, bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_names_its_event() {
        for &event in PerfEvent::ALL {
            assert!(PerfEvent::selected(event.selector()).eq([event]), "{event:?}");
            assert!(event.row().description.ends_with('.'), "{event:?}");
        }
        let mut names: Vec<_> = PerfEvent::ALL.iter().map(|event| event.row().name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PerfEvent::ALL.len());
    }

    #[test]
    fn raw_selectors_name_every_event_and_nothing_else() {
        let known = |selector: u32| {
            raw_selectors().any(|own| {
                u32::from(own.set) == selector & 0xff && selector & !0xff & !own.mask == 0
            })
        };
        for &event in PerfEvent::ALL {
            assert!(known(event.selector()), "{event:?}");
        }
        for none in [0, 7, 25, 31, 255, 0xdead_beef, 0xff_0000 << 8 | 35] {
            assert!(!known(none), "{none:#x}");
        }
        let code = |set: u8| raw_selectors().find(|own| own.set == set);
        assert_eq!(code(1).and_then(|own| own.with_condition), None);
        assert_eq!(code(2).and_then(|own| own.with_condition), Some(0));
    }

    #[test]
    fn a_mask_names_several_and_nothing_else_does() {
        let selector = PerfEvent::CyclesDrained.selector() | PerfEvent::CyclesFlushed.selector();
        let both = [PerfEvent::CyclesFlushed, PerfEvent::CyclesDrained];
        assert!(PerfEvent::selected(selector).eq(both));
        for none in [0, 7, 25, 31, 32, 0xff_0000 << 8 | 35, 255, u32::MAX] {
            assert_eq!(PerfEvent::selected(none).count(), 0, "{none:#x}");
        }
        // A code has no mask.
        assert!(PerfEvent::selected(0xff02).eq([PerfEvent::Instructions]));
    }
}
