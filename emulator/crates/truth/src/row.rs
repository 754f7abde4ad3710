//! How the file has instructions: as arrays, whose entries it names once.

use commit_trace::{Class, MAX_COMMIT_WIDTH};
use sampling_units::pdis::LATENCIES;
use sampling_units::pdis::header::{TYPE, TYPE_FETCH};
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::counts::{BUCKETS, Counts, Memory};
use crate::file::Instruction;
use crate::records::{Executions, LatencyCount};
use crate::schema::{ClassName, Hex};
use crate::short::trimmed;

/// Names of a [`InstArray`]'s entries.
const ROW: [&str; 15] = [
    "hart",
    "id",
    "pc",
    "raw",
    "class",
    "privilege",
    "process",
    "function",
    "offset",
    "oracle_cycles",
    "counts",
    "memory",
    "target",
    "slots",
    "records",
];
/// Names of the entries of `counts`, without which there is nothing of them.
const COUNTS: [&str; 10] = [
    "executed",
    "total_cycles",
    "head_cycles",
    "execution_cycles",
    "mispredicted",
    "flushed",
    "l1i_misses",
    "itlb_misses",
    "trapped",
    "replayed",
];
/// Names of the entries of `memory`.
const MEMORY: [&str; 6] =
    ["loads", "stores", "translating", "sources", "translations", "latencies"];

/// Names of the entries of one of `records`; `events` are the header's bits from 32 up. Each latency has numbers for each step: its
/// least, how often, and of accesses and fetches the sum of perf's weights.
const RECORD: [&str; 2 + LATENCIES] =
    ["type", "events", "total", "dispatch", "issue", "execution", "oldest"];

/// The names of all entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns;

/// Names of the entries of arrays.
#[derive(JsonSchema, Serialize, Deserialize)]
pub(crate) struct Names {
    /// Names of the entries of an instruction.
    instruction: Vec<String>,
    /// Names of the entries of `counts`.
    counts: Vec<String>,
    /// Names of the entries of `memory`.
    memory: Vec<String>,
    /// Names of the entries of one of `records`.
    record: Vec<String>,
}

impl Names {
    fn new() -> Self {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Self {
            instruction: owned(&ROW),
            counts: owned(&COUNTS),
            memory: owned(&MEMORY),
            record: owned(&RECORD),
        }
    }
}

impl Serialize for Columns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Names::new().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Columns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (found, own) = (Names::deserialize(deserializer)?, Names::new());
        let all = |names: &Names| {
            let Names { instruction, counts, memory, record } = names;
            [&instruction[..], counts, memory, record].concat()
        };
        match all(&found) == all(&own) {
            true => Ok(Self),
            false => Err(D::Error::custom(format!(
                "columns: expected {:?}, found {:?}",
                all(&own),
                all(&found)
            ))),
        }
    }
}

/// An instruction as an array.
#[derive(JsonSchema, Serialize, Deserialize)]
pub(crate) struct InstArray(
    /// `hart`: the hart.
    u32,
    /// `id`: the instruction's number in the hart's stream and trace.
    u32,
    /// `pc`: virtual address.
    #[serde(with = "crate::hex")]
    #[schemars(with = "Hex")]
    u64,
    /// `raw`: encoding.
    u32,
    /// `class`: coarse class.
    #[schemars(with = "ClassName")]
    Class,
    /// `privilege`: 0 U, 1 S, 3 M.
    u8,
    /// `process`: index into `processes` of the program whose address space the instruction is in; none: kernel or firmware.
    Option<u32>,
    /// `function`: index into `functions`.
    u32,
    /// `offset`: distance from the function's start, in bytes.
    u64,
    /// `oracle_cycles`: cycles by the Oracle, in all processes.
    f64,
    /// `counts`: how often the instruction left the ROB and what became of it, in the order of `columns.counts`; zeros at the end are
    /// left out.
    #[serde(with = "trimmed")]
    #[schemars(with = "Vec<u64>")]
    [u64; COUNTS.len()],
    /// `memory`: the counts of data accesses; none of an instruction without any.
    Option<MemoryRow>,
    /// `target`: target of a direct branch or jump.
    #[serde(with = "crate::hex::optional")]
    #[schemars(with = "Option<Hex>")]
    Option<u64>,
    /// `slots`: how often the instruction left the ROB, by the slot in which it was decoded; zeros at the end are left out.
    #[serde(with = "trimmed")]
    #[schemars(with = "Vec<u64>")]
    [u64; MAX_COMMIT_WIDTH],
    /// `records`: executions by what a sample of them would hold.
    Vec<RecordRow>,
);

/// The entries of `records`.
#[derive(JsonSchema, Serialize, Deserialize)]
struct RecordRow(
    /// `type`: the low bits of the record's header.
    u8,
    /// `events`: the header's bits from 32 up.
    u32,
    /// `total`: the numbers of each step of the latency, one step after the other: its least latency in cycles, how often it was, and of
    /// accesses and fetches the sum of perf's weights.
    Vec<u64>,
    /// `dispatch`: numbers as those of `total`.
    Vec<u64>,
    /// `issue`: numbers as those of `total`.
    Vec<u64>,
    /// `execution`: numbers as those of `total`.
    Vec<u64>,
    /// `oldest`: numbers as those of `total`.
    Vec<u64>,
);

/// Numbers for each step of a latency.
fn numbers(header: u64) -> usize {
    match header & TYPE {
        1..=3 | TYPE_FETCH => 3,
        _ => 2,
    }
}

impl From<&Executions> for RecordRow {
    fn from(own: &Executions) -> Self {
        let width = numbers(own.header);
        let [total, dispatch, issue, execution, oldest] = [0, 1, 2, 3, 4].map(|latency: usize| {
            let counts = own.latencies[latency].iter();
            let all = |count: &LatencyCount| [count.from.into(), count.times, count.weight];
            counts.flat_map(|count| all(count).into_iter().take(width)).collect()
        });
        let (kind, events) = ((own.header & TYPE) as u8, (own.header >> 32) as u32);
        Self(kind, events, total, dispatch, issue, execution, oldest)
    }
}

impl From<RecordRow> for Executions {
    fn from(row: RecordRow) -> Self {
        let RecordRow(kind, events, total, dispatch, issue, execution, oldest) = row;
        let header = u64::from(kind) & TYPE | u64::from(events) << 32;
        let width = numbers(header);
        let count = |numbers: &[u64]| LatencyCount {
            from: numbers[0].min(u16::MAX.into()) as u16,
            times: numbers[1],
            weight: numbers.get(2).copied().unwrap_or(0),
        };
        Self {
            header,
            latencies: [total, dispatch, issue, execution, oldest]
                .map(|numbers: Vec<u64>| numbers.chunks_exact(width).map(count).collect()),
        }
    }
}

/// The entries of `memory`.
#[derive(JsonSchema, Serialize, Deserialize)]
struct MemoryRow(
    /// `loads`: loads, atomics with them.
    u64,
    /// `stores`: stores, atomics with them.
    u64,
    /// `translating`: cycles that translations took beyond those of a hit.
    u64,
    /// `sources`: accesses by who answered; zeros at the end are left out.
    #[serde(with = "trimmed")]
    #[schemars(with = "Vec<u64>")]
    [u64; commit_trace::DataSource::ALL.len()],
    /// `translations`: accesses by how the address was translated; zeros at the end are left out.
    #[serde(with = "trimmed")]
    #[schemars(with = "Vec<u64>")]
    [u64; commit_trace::Translation::ALL.len()],
    /// `latencies`: accesses by execution latency: entry 0 has 0 and 1 cycles, entry n from 2^n to 2^(n+1) - 1, the last all longer ones;
    /// zeros at the end are left out.
    #[serde(with = "trimmed")]
    #[schemars(with = "Vec<u64>")]
    [u64; BUCKETS],
);

impl From<Instruction> for InstArray {
    fn from(own: Instruction) -> Self {
        let counts = &own.counts;
        let memory = counts.memory.as_ref().map(|memory| {
            MemoryRow(
                memory.loads,
                memory.stores,
                memory.translating,
                memory.sources,
                memory.translations,
                memory.latencies,
            )
        });
        Self(
            own.hart,
            own.id,
            own.pc,
            own.raw,
            own.class,
            own.privilege,
            own.process,
            own.function,
            own.offset,
            own.oracle_cycles,
            [
                counts.executed,
                counts.total_cycles,
                counts.head_cycles,
                counts.execution_cycles,
                counts.mispredicted,
                counts.flushed,
                counts.l1i_misses,
                counts.itlb_misses,
                counts.trapped,
                counts.replayed,
            ],
            memory,
            own.target,
            counts.slots,
            counts.records.iter().map(RecordRow::from).collect(),
        )
    }
}

impl From<InstArray> for Instruction {
    fn from(row: InstArray) -> Self {
        let InstArray(
            hart,
            id,
            pc,
            raw,
            class,
            privilege,
            process,
            function,
            offset,
            cycles,
            counts,
            memory,
            target,
            slots,
            records,
        ) = row;
        let [
            executed,
            total_cycles,
            head_cycles,
            execution_cycles,
            mispredicted,
            flushed,
            l1i_misses,
            itlb_misses,
            trapped,
            replayed,
        ] = counts;
        let memory = memory.map(
            |MemoryRow(loads, stores, translating, sources, translations, latencies)| {
                Box::new(Memory { loads, stores, sources, translations, translating, latencies })
            },
        );
        Self {
            hart,
            id,
            pc,
            raw,
            target,
            class,
            privilege,
            process,
            function,
            offset,
            oracle_cycles: cycles,
            counts: Counts {
                executed,
                trapped,
                replayed,
                mispredicted,
                flushed,
                total_cycles,
                head_cycles,
                execution_cycles,
                l1i_misses,
                itlb_misses,
                slots,
                memory,
                records: records.into_iter().map(Executions::from).collect(),
            },
        }
    }
}
