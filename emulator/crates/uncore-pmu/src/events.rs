//! The events of both units.

/// What a unit counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The last-level cache, with the directory of what the harts' own caches hold.
    Llc = 1,
    /// The memory controller.
    MemoryController = 2,
}

/// Origins of requests, in the order of the bits of `SELECT.ORIGINS`: name, meaning.
pub const ORIGINS: [(&str, &str); 6] = [
    ("fetch", "misses of the instruction cache"),
    ("load", "loads"),
    ("store", "stores and atomics: lines, and leave to write to them"),
    ("walk", "page-table walks"),
    ("prefetch", "prefetchers of the L1 caches"),
    (
        "writeback",
        "lines that the caches of a hart give back, because of its own request or because another hart reads them",
    ),
];

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct EventRow {
    /// The event.
    pub event: Event,
    /// Where it is counted.
    pub unit: Unit,
    /// Number in `SELECT.EVENT` and bit in `EVENTS`.
    pub number: u8,
    /// Name, also in perf.
    pub name: &'static str,
    /// The event is no count, but how much there is.
    pub level: bool,
    /// `SELECT.HARTS` and `SELECT.ORIGINS` choose among its causes.
    pub filtered: bool,
    /// One line for the header and the documentation.
    pub doc: &'static str,
}

macro_rules! events {
    ($($variant:ident $unit:ident $number:literal $name:literal $($flag:ident)* : $doc:literal;)*) => {
        /// An event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Event { $(#[doc = $doc] $variant,)* }

        impl Event {
            /// The table, by unit and number.
            pub const TABLE: &[EventRow] = &[$(EventRow {
                event: Self::$variant,
                unit: Unit::$unit,
                number: $number,
                name: $name,
                level: false $(|| matches!(Flag::$flag, Flag::Level))*,
                filtered: true $(&& !matches!(Flag::$flag, Flag::Whole))*,
                doc: $doc,
            }),*];
        }
    };
}

enum Flag {
    Level,
    Whole,
}

events! {
    Lookups Llc 1 "lookups": "lines looked up: those read, but for the ones that another hart's caches give, and those written back";
    Hits Llc 2 "hits": "lookups that found the line";
    Misses Llc 3 "misses": "lookups that did not: a read goes to memory, a line written back takes a place";
    Evictions Llc 4 "evictions": "lines that another one took the place of";
    Writebacks Llc 5 "writebacks": "evictions of modified lines, which are written to memory";
    Probes Llc 6 "probes": "caches of other harts that were asked to give or drop a line";
    Transfers Llc 7 "transfers": "requests for a line that the caches of another hart gave";
    ModifiedTransfers Llc 8 "modified_transfers": "transfers of lines that the other hart had modified";
    Upgrades Llc 9 "upgrades": "requests to write to a line that was held to be read";
    Occupancy Llc 10 "occupancy" Level: "lines that the cache holds, by the request that brought each";
    Reads MemoryController 1 "reads": "lines read";
    Writes MemoryController 2 "writes": "lines written";
    ReadBytes MemoryController 3 "read_bytes": "bytes read";
    WriteBytes MemoryController 4 "write_bytes": "bytes written";
    Activations MemoryController 5 "activations": "rows opened";
    RowHits MemoryController 6 "row_hits": "accesses that found their row open";
    RowConflicts MemoryController 7 "row_conflicts": "accesses that found another row open, which was closed first";
    QueueOccupancy MemoryController 8 "queue_occupancy": "cycles that accesses waited for a refresh, their bank or the bus: divided by cycles, the mean number that wait";
    Refreshes MemoryController 9 "refreshes" Whole: "refreshes begun, in one of which no bank is accessed";
}

impl Event {
    /// Returns the event's row of the table.
    pub fn row(self) -> &'static EventRow {
        &Self::TABLE[self as usize]
    }

    /// Returns the event of a unit with this number.
    pub fn of(unit: Unit, number: u8) -> Option<Self> {
        let mut rows = Self::TABLE.iter();
        let row = rows.find(|row| row.unit == unit && row.number == number);
        row.map(|row| row.event)
    }
}
