//! How the file has instructions: as arrays, whose entries it names once.

use commit_trace::Class;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::counts::{BUCKETS, Counts, Memory};
use crate::file::Instruction;
use crate::short::trimmed;

/// Names of a [`Row`]'s entries.
const ROW: [&str; 12] = [
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
const MEMORY: [&str; 6] = [
    "loads",
    "stores",
    "translating",
    "sources",
    "translations",
    "latencies",
];

/// The names of all entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns;

#[derive(Serialize, Deserialize)]
struct Names {
    instruction: Vec<String>,
    counts: Vec<String>,
    memory: Vec<String>,
}

impl Names {
    fn new() -> Self {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Self {
            instruction: owned(&ROW),
            counts: owned(&COUNTS),
            memory: owned(&MEMORY),
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
        let all = |names: &Names| [&names.instruction[..], &names.counts, &names.memory].concat();
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
#[derive(Serialize, Deserialize)]
pub(crate) struct Row(
    u32,
    u32,
    #[serde(with = "crate::hex")] u64,
    u32,
    Class,
    u8,
    Option<u32>,
    u32,
    u64,
    f64,
    #[serde(with = "trimmed")] [u64; COUNTS.len()],
    Option<MemoryRow>,
);

#[derive(Serialize, Deserialize)]
struct MemoryRow(
    u64,
    u64,
    u64,
    #[serde(with = "trimmed")] [u64; commit_trace::DataSource::ALL.len()],
    #[serde(with = "trimmed")] [u64; commit_trace::Translation::ALL.len()],
    #[serde(with = "trimmed")] [u64; BUCKETS],
);

impl From<Instruction> for Row {
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
        )
    }
}

impl From<Row> for Instruction {
    fn from(row: Row) -> Self {
        let Row(
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
                Box::new(Memory {
                    loads,
                    stores,
                    sources,
                    translations,
                    translating,
                    latencies,
                })
            },
        );
        Self {
            hart,
            id,
            pc,
            raw,
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
                memory,
            },
        }
    }
}
