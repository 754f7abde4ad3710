//! The parts of the file before and after the records.

use super::bytes::Bytes;

/// An event, and the id that its samples carry.
pub(super) struct Event {
    pub name: String,
    pub id: u64,
    pub period: u64,
}

/// Everything but the records.
pub(super) struct Header<'a> {
    pub events: &'a [Event],
    pub data_bytes: u64,
    pub name: &'a str,
    /// First and last time, in nanoseconds.
    pub times: (u64, u64),
    /// Samples have call chains.
    pub call_chains: bool,
}

const HEADER_BYTES: u64 = 104;
/// Size of `perf_event_attr` since Linux 4.1 (`PERF_ATTR_SIZE_VER5`): has all that is used here.
const ATTR_BYTES: usize = 112;
/// Bytes of an attribute and of the reference to its ids.
const ENTRY_BYTES: u64 = ATTR_BYTES as u64 + 16;

/// IP, TID, TIME, PERIOD, IDENTIFIER.
const SAMPLE_TYPE: u64 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 8 | 1 << 16;
const CALLCHAIN: u64 = 1 << 5;
/// Mappings and names are recorded (`mmap`, `comm`, `comm_exec`, `mmap2`), and every record has a
/// time (`sample_id_all`).
const FLAGS: u64 = 1 << 5 | 1 << 8 | 1 << 9 | 1 << 18 | 1 << 23 | 1 << 24;

const FEATURE_HOSTNAME: u64 = 3;
const FEATURE_ARCH: u64 = 6;
const FEATURE_CMDLINE: u64 = 11;
const FEATURE_EVENT_DESC: u64 = 12;
const FEATURE_SAMPLE_TIME: u64 = 21;

impl Header<'_> {
    /// The file header, ids and events.
    pub(super) fn before(&self) -> Vec<u8> {
        let ids = 8 * self.events.len() as u64;
        let attrs = HEADER_BYTES + ids;
        let attr_bytes = ENTRY_BYTES * self.events.len() as u64;
        let mut out = Bytes::default();
        out.raw(b"PERFILE2").u64(HEADER_BYTES).u64(ENTRY_BYTES);
        out.u64(attrs).u64(attr_bytes);
        out.u64(attrs + attr_bytes).u64(self.data_bytes);
        // The section of event types is no longer used.
        out.u64(0).u64(0);
        let features = self.features().iter().fold(0, |bits, (bit, _)| bits | 1 << bit);
        out.u64(features).u64(0).u64(0).u64(0);
        for event in self.events {
            out.u64(event.id);
        }
        for (index, event) in (0..).zip(self.events) {
            out.raw(&self.attr(event)).u64(HEADER_BYTES + 8 * index).u64(8);
        }
        out.0
    }

    /// The features: a table, then what it points to.
    pub(super) fn after(&self) -> Vec<u8> {
        let features = self.features();
        let start = self.before().len() as u64 + self.data_bytes;
        let mut place = start + 16 * features.len() as u64;
        let mut out = Bytes::default();
        for (_, feature) in &features {
            let size = feature.0.len() as u64;
            out.u64(place).u64(size);
            place += size;
        }
        for (_, feature) in &features {
            out.raw(&feature.0);
        }
        out.0
    }

    /// The features by bit number, ascending.
    fn features(&self) -> Vec<(u64, Bytes)> {
        let make = |fill: &dyn Fn(&mut Bytes)| {
            let mut bytes = Bytes::default();
            fill(&mut bytes);
            bytes
        };
        vec![
            (FEATURE_HOSTNAME, make(&|b| _ = b.header_string("tipsim"))),
            (FEATURE_ARCH, make(&|b| _ = b.header_string("riscv64"))),
            (
                FEATURE_CMDLINE,
                make(&|b| {
                    b.u32(2).header_string("tipsim").header_string(self.name);
                }),
            ),
            (FEATURE_EVENT_DESC, make(&|b| self.describe_events(b))),
            (
                FEATURE_SAMPLE_TIME,
                make(&|b| {
                    b.u64(self.times.0).u64(self.times.1);
                }),
            ),
        ]
    }

    fn describe_events(&self, out: &mut Bytes) {
        out.u32(self.events.len() as u32).u32(ATTR_BYTES as u32);
        for event in self.events {
            out.raw(&self.attr(event)).u32(1).header_string(&event.name).u64(event.id);
        }
    }

    /// A `perf_event_attr` of the hardware event "cycles", in which periods are counted.
    fn attr(&self, event: &Event) -> Vec<u8> {
        let sample_type = SAMPLE_TYPE | if self.call_chains { CALLCHAIN } else { 0 };
        let mut out = Bytes::default();
        out.u32(0).u32(ATTR_BYTES as u32).u64(0);
        out.u64(event.period).u64(sample_type).u64(0).u64(FLAGS);
        out.0.resize(ATTR_BYTES, 0);
        out.0
    }
}
