//! Excerpts: consecutive instructions with all their stages.

use commit_trace::{
    CommitRecord, CycleClass, DataSource, Detail, DispatchWait, InstId, MAX_CYCLE, Redirect,
    Translation,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The excerpts of one hart's region of interest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Excerpts {
    /// The core's widths.
    pub widths: Widths,
    /// The core's delays; in a file that does not have them, those of the cores that wrote such files.
    #[serde(default = "Delays::of_older_files")]
    pub delays: Delays,
    /// Excerpts, in order of time.
    pub list: Vec<Excerpt>,
}

/// Width that no core has.
const MOST_WIDTH: u32 = 1 << 10;
/// Cycles that no stage of a core takes.
const MOST_DELAY: u64 = 1 << 10;

impl Excerpts {
    /// Returns the excerpts of several harts; `number` gives an instruction of a hart its number among those of all harts.
    pub fn merged(harts: &[Self], number: impl Fn(usize, InstId) -> InstId) -> Option<Self> {
        let Self { widths, delays, .. } = *harts.first()?;
        let mut list = Vec::new();
        for (hart, of_hart) in harts.iter().enumerate() {
            let renumbered = |row: &InstTimes| InstTimes { inst: number(hart, row.inst), ..*row };
            list.extend(of_hart.list.iter().map(|excerpt| Excerpt {
                rows: excerpt.rows.iter().map(renumbered).collect(),
                ..excerpt.clone()
            }));
        }
        Some(Self { widths, delays, list })
    }

    /// Checks excerpts that come from a file, whose cycles may be out of order or beyond any run. Excerpts that come straight from a core need no
    /// check.
    ///
    /// # Errors
    /// What was expected, and what was found.
    pub fn check(&self) -> Result<(), String> {
        let Widths { decode, int, mem, fp } = self.widths;
        for width in [decode, int, mem, fp] {
            if width > MOST_WIDTH {
                return Err(format!("widths: expected at most {MOST_WIDTH}, found {width}"));
            }
        }
        let Delays { load_search, store_data, branch_tag, register } = self.delays;
        for delay in [load_search, store_data, branch_tag, register] {
            if delay > MOST_DELAY {
                return Err(format!("delays: expected at most {MOST_DELAY} cycles, found {delay}"));
            }
        }
        for excerpt in &self.list {
            let mut before = excerpt.from;
            for row in &excerpt.rows {
                if row.commit < before {
                    let commit = row.commit;
                    return Err(format!(
                        "rows: expected a commit in cycle {before} or later, found {commit}"
                    ));
                }
                before = row.commit;
                let most = { [row.written, row.translating, row.packet_translating] }
                    .into_iter()
                    .fold(row.commit, u64::max);
                if most >= MAX_CYCLE {
                    return Err(format!(
                        "rows: expected fewer than {MAX_CYCLE} cycles, found {most}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// How many of each resource a core has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Widths {
    /// Instructions decoded, dispatched and committed per cycle.
    pub decode: u32,
    /// Issue ports for integer operations.
    pub int: u32,
    /// Issue ports for memory operations.
    pub mem: u32,
    /// Issue ports for floating-point operations.
    pub fp: u32,
}

/// Cycles between events of a core's back end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delays {
    /// Cycles from the issue of a load to its search of the store queue.
    pub load_search: u64,
    /// Cycles from the arrival of a store's data in the store queue to the first cycle in which the store can commit.
    pub store_data: u64,
    /// Cycles from the issue of a branch to the dispatch that can have its tag.
    pub branch_tag: u64,
    /// Cycles from a commit to the dispatch that can have the register that the commit freed.
    pub register: u64,
}

impl Delays {
    /// Returns the delays of all cores that wrote files without delays.
    fn of_older_files() -> Self {
        Self { load_search: 3, store_data: 2, branch_tag: 5, register: 2 }
    }
}

/// What excerpts say of the core that they are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreDescription {
    /// How many of each resource the core has.
    pub widths: Widths,
    /// How long the core's back end takes.
    pub delays: Delays,
}

/// Consecutive instructions of a hart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Excerpt {
    /// Cycle in which the instruction before the first one left.
    pub from: u64,
    /// Instructions, in program order.
    pub rows: Vec<InstTimes>,
}

impl Excerpt {
    /// Returns the cycle in which the row before row `row` left.
    pub fn before(&self, row: usize) -> u64 {
        row.checked_sub(1).map_or(self.from, |before| self.rows[before].commit)
    }

    /// Returns whether the row after `row` executes its instruction anew, a load that had overtaken an older store to its address. After an exception
    /// of any other kind comes the handler.
    pub fn is_executed_anew(&self, row: usize) -> bool {
        let [this, next] = [row, row + 1].map(|row| self.rows.get(row));
        this.zip(next).is_some_and(|(this, next)| {
            this.redirect == Redirect::Exception && this.inst == next.inst
        })
    }
}

/// An instruction that left the ROB. Cycles are the core's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Packed", into = "Packed")]
pub struct InstTimes {
    /// Static instruction.
    pub inst: InstId,
    /// Cycle in which the fetch packet that the instruction starts was first asked for.
    pub asked: u64,
    /// Cycle in which that packet was delivered to the fetch buffer; 0 if the instruction starts no packet.
    pub delivered: u64,
    /// Cycle in which the instruction was decoded.
    pub decode: u64,
    /// Cycle in which the instruction was dispatched.
    pub dispatch: u64,
    /// Cycle in which the instruction issued; 0 if it never did.
    pub issue: u64,
    /// Cycle from which on dependents could issue.
    pub wake: u64,
    /// Cycle from which on the instruction could have left the ROB.
    pub complete: u64,
    /// Cycle in which the instruction left the ROB.
    pub commit: u64,
    /// Cycle in which the line of a store is written; 0 for other instructions.
    pub written: u64,
    /// What dispatch of the instruction waited for.
    pub wait: DispatchWait,
    /// Why the front end was redirected after the instruction.
    pub redirect: Redirect,
    /// True if the instruction is the first of its ROB row.
    pub first_of_row: bool,
    /// What the instruction waited for at the head of the ROB.
    pub class: CycleClass,
    /// Who answered the data access.
    pub source: DataSource,
    /// How the address of the data access was translated.
    pub translation: Translation,
    /// Cycles that the translation of the data access took beyond those of a hit.
    pub translating: u64,
    /// Physical address of the data access; 0 if there is none.
    pub pa: u64,
    /// Who had the line of the fetch packet that the instruction starts.
    pub packet_source: DataSource,
    /// Cycles that the translation of that packet's address took beyond those of a hit.
    pub packet_translating: u64,
}

impl InstTimes {
    /// Returns the row of a record, which left in cycle `commit`, and of its details.
    pub fn new(record: &CommitRecord, commit: u64, detail: &Detail) -> Self {
        Self {
            inst: record.inst,
            asked: detail.packet.asked,
            delivered: detail.packet.delivered,
            decode: detail.decode,
            dispatch: detail.dispatch,
            issue: detail.issue,
            wake: detail.wake.min(commit),
            complete: detail.complete,
            commit,
            written: detail.access.written,
            wait: detail.dispatch_wait,
            redirect: record.redirect(),
            first_of_row: record.first_of_row(),
            class: record.class(),
            source: detail.access.source,
            translation: detail.access.translation,
            translating: detail.access.translating.into(),
            pa: detail.access.pa,
            packet_source: detail.packet.source,
            packet_translating: detail.packet.translating.into(),
        }
    }
}

/// A row in a file: cycles before its commit plus one, 0 for none, which are small numbers.
#[derive(Serialize, Deserialize)]
struct Packed([u64; 15]);

impl From<InstTimes> for Packed {
    fn from(row: InstTimes) -> Self {
        let before = |cycle: u64| match cycle {
            0 => 0,
            _ => row.commit.saturating_sub(cycle) + 1,
        };
        let after = |cycle: u64| cycle.saturating_sub(row.commit);
        let flags = [
            row.wait as u64,
            row.redirect as u64,
            row.first_of_row.into(),
            row.class as u64,
            row.source as u64,
            row.translation as u64,
            row.packet_source as u64,
        ];
        Self([
            row.inst.0.into(),
            row.commit,
            before(row.asked),
            before(row.delivered),
            before(row.decode),
            before(row.dispatch),
            before(row.issue),
            before(row.wake),
            before(row.complete),
            after(row.written),
            flags.iter().rev().fold(0, |word, flag| word << 4 | flag),
            row.translating,
            row.packet_translating,
            row.pa >> 32,
            row.pa & u64::from(u32::MAX),
        ])
    }
}

impl From<Packed> for InstTimes {
    fn from(Packed(packed): Packed) -> Self {
        let [
            inst,
            commit,
            asked,
            delivered,
            decode,
            dispatch,
            issue,
            wake,
            complete,
            written,
            flags,
            translating,
            packet_translating,
            high,
            low,
        ] = packed;
        let cycle = |before: u64| match before {
            0 => 0,
            _ => commit.saturating_sub(before - 1),
        };
        let flag = |n: u32| (flags >> (4 * n) & 15) as u8;
        Self {
            inst: InstId(inst as u32),
            asked: cycle(asked),
            delivered: cycle(delivered),
            decode: cycle(decode),
            dispatch: cycle(dispatch),
            issue: cycle(issue),
            wake: cycle(wake),
            complete: cycle(complete),
            commit,
            written: match written {
                0 => 0,
                after => commit.saturating_add(after),
            },
            wait: DispatchWait::of_number(flag(0)).unwrap_or_default(),
            redirect: Redirect::from_bits(flag(1).into()),
            first_of_row: flag(2) != 0,
            class: CycleClass::from_bits(flag(3).into()),
            source: DataSource::of_number(flag(4)).unwrap_or_default(),
            translation: Translation::of_number(flag(5)).unwrap_or_default(),
            translating,
            pa: high << 32 | low & u64::from(u32::MAX),
            packet_source: DataSource::of_number(flag(6)).unwrap_or_default(),
            packet_translating,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let row = InstTimes {
            inst: InstId(7),
            asked: 80,
            delivered: 85,
            decode: 90,
            dispatch: 91,
            issue: 95,
            wake: 96,
            complete: 99,
            commit: 100,
            written: 120,
            wait: DispatchWait::Empty,
            redirect: Redirect::Interrupt,
            first_of_row: true,
            class: CycleClass::Device,
            source: DataSource::Upgrade,
            translation: Translation::Walk,
            translating: 33,
            pa: 0x12_8000_0000,
            packet_source: DataSource::Memory,
            packet_translating: 1,
        };
        for row in [row, InstTimes::default()] {
            let text = serde_json::to_string(&row).unwrap();
            assert_eq!(serde_json::from_str::<InstTimes>(&text).unwrap(), row);
        }
    }

    #[test]
    fn no_numbers_panic() {
        let text = format!("[{}]", vec![u64::MAX.to_string(); 15].join(","));
        let row: InstTimes = serde_json::from_str(&text).unwrap();
        serde_json::to_string(&row).unwrap();
        let excerpts = |from, rows: &[InstTimes]| Excerpts {
            list: vec![Excerpt { from, rows: rows.to_vec() }],
            ..Excerpts::default()
        };
        let error = |from, rows: &[InstTimes]| excerpts(from, rows).check().unwrap_err();
        assert!(error(0, &[row]).starts_with("rows: expected fewer than "));
        let row = |commit| InstTimes { commit, ..InstTimes::default() };
        assert_eq!(excerpts(3, &[row(3), row(5)]).check(), Ok(()));
        let expected = "rows: expected a commit in cycle 4 or later, found 3";
        assert_eq!(error(4, &[row(3), row(5)]), expected);
        let expected = "rows: expected a commit in cycle 5 or later, found 4";
        assert_eq!(error(3, &[row(5), row(4)]), expected);
        let wide = Excerpts {
            widths: Widths { fp: u32::MAX, ..Widths::default() },
            ..Excerpts::default()
        };
        let expected = "widths: expected at most 1024, found 4294967295";
        assert_eq!(wide.check().unwrap_err(), expected);
        let slow = Excerpts {
            delays: Delays { register: 1 << 60, ..Delays::default() },
            ..Excerpts::default()
        };
        let expected = "delays: expected at most 1024 cycles, found 1152921504606846976";
        assert_eq!(slow.check().unwrap_err(), expected);
    }

    #[test]
    fn a_file_without_delays_has_those_of_the_cores_that_wrote_such_files() {
        let mut file = serde_json::to_value(Excerpts::default()).unwrap();
        file.as_object_mut().unwrap().remove("delays").unwrap();
        let read: Excerpts = serde_json::from_value(file).unwrap();
        let expected = Delays { load_search: 3, store_data: 2, branch_tag: 5, register: 2 };
        assert_eq!(read.delays, expected);
    }
}
