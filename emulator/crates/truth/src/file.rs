//! `truth.json`: what was counted, with names.

use commit_trace::{Class, InstId};
use profile::ProcessId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::lines::{ExchangeCounts, LINE_BYTES, LineUse, Lines, TrackedLine};
use crate::row::{Columns, InstArray, Names};
use crate::schema::Hex;

/// Version of the file; readers refuse others.
pub const FORMAT: u32 = 2;

/// Most lines that the file lists: those with the most cycles waited. It has the sums over all other lines.
const MAX_LINES: usize = 100_000;
/// Instructions of a line whose exchanges are listed.
const MAX_EXCHANGES: usize = 16;

/// The content of `truth.json`: the counts of all harts.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Truth {
    /// Version of the file.
    #[schemars(extend("const" = FORMAT))]
    pub format: u32,
    /// Bytes of a cache line.
    pub line_bytes: u64,
    /// What the entries of an instruction are.
    #[schemars(with = "Names")]
    pub columns: Columns,
    /// Names of functions.
    pub functions: Vec<String>,
    /// Processes.
    pub processes: Vec<Process>,
    /// Instructions that left the ROB in the region of interest, by hart and number.
    pub instructions: Vec<Instruction>,
    /// The units that sample instructions, by hart.
    pub units: Vec<UnitTotals>,
    /// Lines, those with the most cycles waited first.
    pub lines: Vec<Line>,
    /// The sums of all other lines.
    pub lines_left_out: LeftOut,
}

impl Truth {
    /// Returns an instruction's function, with the distance from its start: `function+0x12`.
    pub fn label(&self, instruction: &Instruction) -> String {
        let name = self.functions.get(instruction.function as usize).map_or("?", |name| name);
        match instruction.offset {
            0 => name.to_owned(),
            offset => format!("{name}+{offset:#x}"),
        }
    }

    /// Checks that the content of a file is consistent, because readers use its numbers as indices.
    ///
    /// # Errors
    /// The field, what was expected of it and what was found.
    pub fn check(&self) -> Result<(), String> {
        let expect = |holds: bool, field: &str, expected: String, found: String| match holds {
            true => Ok(()),
            false => Err(format!("{field}: expected {expected}, found {found}")),
        };
        let Self { format, line_bytes, .. } = self;
        expect(*format == FORMAT, "format", FORMAT.to_string(), format.to_string())?;
        let lines = LINE_BYTES.to_string();
        expect(*line_bytes == LINE_BYTES, "line_bytes", lines, line_bytes.to_string())?;
        let below = |field: &str, found: u32, limit: usize| {
            let expected = format!("a number below {limit}");
            expect((found as usize) < limit, field, expected, found.to_string())
        };
        for instruction in &self.instructions {
            below("instructions.function", instruction.function, self.functions.len())?;
            if let Some(process) = instruction.process {
                below("instructions.process", process, self.processes.len())?;
            }
        }
        for process in self.lines.iter().flat_map(|line| &line.uses).filter_map(|own| own.process) {
            below("lines.uses.process", process, self.processes.len())?;
        }
        Ok(())
    }
}

/// A program that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Process {
    /// The kernel's process id; `None`: of many processes that are told as one.
    pub pid: Option<u32>,
    /// The kernel's name of it.
    pub name: String,
    /// How many processes are told as one, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
}

/// What became of the overflows of a unit that samples instructions, since reset; the draft's PDIS.SAMPLES, and so on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct UnitTotals {
    /// The hart.
    pub hart: u32,
    /// Overflows, and selections after a record that was discarded.
    pub overflows: u64,
    /// Samples that were recorded.
    pub samples: u64,
    /// Overflows while another instruction was followed.
    pub collisions: u64,
    /// Samples that a filter discarded.
    pub filtered: u64,
    /// Samples that were lost, since the record before had not been taken, or the buffer takes none.
    pub dropped: u64,
}

impl UnitTotals {
    /// Returns the overflows whose instruction was still followed, or whose record was still on its way, at the end.
    pub fn under_way(&self) -> u64 {
        let done = self.samples + self.collisions + self.filtered + self.dropped;
        self.overflows.saturating_sub(done)
    }
}

/// A static instruction on one hart; in the file an array.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(from = "InstArray", into = "InstArray")]
pub struct Instruction {
    /// The hart.
    pub hart: u32,
    /// The instruction's number in the hart's stream and trace.
    pub id: u32,
    /// Virtual address.
    pub pc: u64,
    /// Encoding.
    pub raw: u32,
    /// Target of a direct branch or jump.
    pub target: Option<u64>,
    /// Coarse class.
    pub class: Class,
    /// Privilege (0 U, 1 S, 3 M).
    pub privilege: u8,
    /// Index into [`Truth::processes`] of the program whose address space the instruction is in; none: kernel or firmware.
    pub process: Option<u32>,
    /// Index into [`Truth::functions`].
    pub function: u32,
    /// Distance from the function's start, in bytes.
    pub offset: u64,
    /// The instruction's cycles by the Oracle, in all processes.
    pub oracle_cycles: f64,
    /// What was counted.
    pub counts: Counts,
}

/// A cache line.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Line {
    /// Physical address.
    #[serde(with = "crate::hex")]
    #[schemars(with = "Hex")]
    pub pa: u64,
    /// The data object that has the line, where a symbol says, with the line's distance from the object's start.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// Whether harts wait for each other's data here, or only for the line.
    pub sharing: Sharing,
    /// Use by hart and program.
    pub uses: Vec<LineAccess>,
    /// Instructions whose accesses had to do with other harts' caches, those with the most cycles first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
}

/// What the sharing misses of a line were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// The line had no sharing misses.
    #[default]
    None,
    /// Most sharing misses were for data that another hart wrote.
    True,
    /// Most sharing misses were for data that no other hart had written: the harts only have the line in common.
    False,
}

/// The use of a line by a program on a hart.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LineAccess {
    /// The hart.
    pub hart: u32,
    /// Index into [`Truth::processes`]; none: kernel or firmware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// What was counted.
    #[serde(flatten)]
    pub counts: LineUse,
}

/// An instruction that waited for other harts.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Exchange {
    /// The hart.
    pub hart: u32,
    /// The instruction's number in the hart's stream, as [`Instruction::id`].
    pub id: u32,
    /// Number and cycles of the instruction's accesses that involved other harts' caches.
    #[serde(flatten)]
    pub counts: ExchangeCounts,
}

/// Sums over lines that the file does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct LeftOut {
    /// Lines.
    pub lines: u64,
    /// Accesses to these lines.
    pub accesses: u64,
    /// Cycles that harts waited for these lines.
    pub cycles: u64,
    /// Accesses to lines that were not told apart at all, as there were too many.
    pub untracked_accesses: u64,
}

impl Line {
    fn of(
        number: u64,
        line: &TrackedLine,
        process: impl Fn(u32, ProcessId) -> Option<u32>,
    ) -> Self {
        let mut uses: Vec<LineAccess> = Vec::new();
        for own in &line.uses {
            let hart = own.hart as u32;
            let process = own.process.and_then(|id| process(hart, id));
            match uses.iter_mut().find(|known| (known.hart, known.process) == (hart, process)) {
                Some(known) => known.counts.merge(&own.counts),
                None => uses.push(LineAccess { hart, process, counts: own.counts.clone() }),
            }
        }
        let mut line = Self {
            pa: number * LINE_BYTES,
            object: String::new(),
            sharing: Sharing::None,
            uses,
            exchanges: Vec::new(),
        };
        let (of_data, of_line) =
            (line.sum(|own| own.true_sharing), line.sum(|own| own.false_sharing));
        line.sharing = match (of_data, of_line) {
            (0, 0) => Sharing::None,
            _ if of_data >= of_line => Sharing::True,
            _ => Sharing::False,
        };
        line
    }

    /// Returns the sum of a count over harts and programs.
    pub fn sum(&self, of: impl Fn(&LineUse) -> u64) -> u64 {
        self.uses.iter().map(|own| of(&own.counts)).sum()
    }

    /// Returns whether harts wait for each other at this line.
    pub fn is_contended(&self) -> bool {
        self.sum(LineUse::exchanges) > 0
    }
}

impl Lines {
    /// Returns the lines of the file, without names, and the sums of the lines that the file leaves out. `process` says which
    /// of the file's processes a process of a hart is; `inst` says which instruction stands for an instruction of a hart.
    pub fn into_file(
        mut self,
        process: impl Fn(u32, ProcessId) -> Option<u32>,
        inst: impl Fn(u32, InstId) -> InstId,
    ) -> (Vec<Line>, LeftOut) {
        self.finish();
        let mut left_out = LeftOut { untracked_accesses: self.untracked, ..LeftOut::default() };
        let mut order: Vec<_> = self
            .lines
            .iter()
            .map(|(number, line)| {
                let sum =
                    |of: fn(&LineUse) -> u64| line.uses.iter().map(|own| of(&own.counts)).sum();
                let (waited, accesses): (u64, u64) =
                    (sum(|own| own.cycles), sum(LineUse::accesses));
                let contended = sum(LineUse::exchanges) > 0;
                (std::cmp::Reverse((contended, waited, accesses)), *number)
            })
            .collect();
        order.sort_unstable();
        for (std::cmp::Reverse((_, waited, accesses)), _) in
            order.drain(MAX_LINES.min(order.len())..)
        {
            left_out.lines += 1;
            left_out.accesses += accesses;
            left_out.cycles += waited;
        }
        let mut lines: Vec<Line> = order
            .iter()
            .map(|(_, number)| Line::of(*number, &self.lines[number], &process))
            .collect();
        self.lines = rustc_hash::FxHashMap::default();
        let mut exchanges: Vec<_> = self.exchanges.into_iter().collect();
        exchanges.sort_by_key(|(key, counts)| (key.line, std::cmp::Reverse(counts.cycles), *key));
        for line in &mut lines {
            let number = line.pa / LINE_BYTES;
            let from = exchanges.partition_point(|(key, _)| key.line < number);
            let own = exchanges[from..].iter().take_while(|(key, _)| key.line == number);
            line.exchanges = own
                .take(MAX_EXCHANGES)
                .map(|(key, counts)| Exchange {
                    hart: key.hart,
                    id: inst(key.hart, key.inst).0,
                    counts: *counts,
                })
                .collect();
        }
        (lines, left_out)
    }
}
