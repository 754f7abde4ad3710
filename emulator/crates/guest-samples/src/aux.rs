//! Samples from AUX areas: records of instruction sampling that the unit itself wrote there (`pdis/…,aux=1/`).
//!
//! A `PERF_RECORD_AUX` says whose records are where in an area, and `PERF_RECORD_AUXTRACE` brings the area's bytes.

use std::collections::BTreeMap;

use super::attr::Attr;
use super::container::{Container, Record};
use super::cursor::Cursor;
use super::event_sample::Sample;
use super::fields;
use super::pdis::PdisRecord;

/// The bit of the PMU's configuration (`aux`).
const AUX: u64 = 1 << 26;
/// `PERF_AUX_FLAG_TRUNCATED`, `…_PARTIAL`.
const LOSSES: u64 = 1 | 4;
/// Addresses from here up are the kernel's.
const KERNEL_HALF: u64 = 1 << 63;

/// The owner of an AUX area: a hart, or a thread if the areas are not of harts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Hart(u32),
    Thread(u32),
}

/// What the records of a `PERF_RECORD_AUX` have in common.
#[derive(Debug)]
struct Chunk {
    event: usize,
    offset: u64,
    size: u64,
    suffix: fields::Suffix,
}

/// `PERF_RECORD_TIME_CONV`: from the hart's `time` to perf's clock.
#[derive(Clone, Copy, Debug)]
struct TimeConversion {
    shift: u32,
    multiplier: u64,
    zero: u64,
}

impl TimeConversion {
    fn parse(body: &[u8]) -> Option<Self> {
        let mut words = Cursor(body);
        let (shift, multiplier, zero) = (words.u64()?, words.u64()?, words.u64()?);
        let shift = u32::try_from(shift).ok().filter(|shift| *shift < 64)?;
        (multiplier != 0).then_some(Self { shift, multiplier, zero })
    }

    fn nanoseconds(&self, time: u64) -> u64 {
        let scaled = (u128::from(time) * u128::from(self.multiplier)) >> self.shift;
        self.zero.wrapping_add(scaled as u64)
    }
}

/// The AUX data of a file.
#[derive(Debug, Default)]
pub(crate) struct AuxData<'a> {
    chunks: Vec<Chunk>,
    /// Bytes of each area, by their offset in the area.
    areas: BTreeMap<Owner, BTreeMap<u64, &'a [u8]>>,
    conversion: Option<TimeConversion>,
    /// The last task that exited on each hart: process and thread.
    exited: BTreeMap<u32, (u32, u32)>,
    /// Times that records were lost because they did not fit.
    pub gaps: u64,
}

impl<'a> AuxData<'a> {
    pub(crate) fn convert_time(&mut self, record: &Record<'_>) {
        self.conversion = TimeConversion::parse(record.body);
    }

    /// Notes a `PERF_RECORD_EXIT`.
    pub(crate) fn exit(&mut self, container: &Container<'_>, record: &Record<'_>) {
        let mut fields = Cursor(record.body);
        let mut read = || {
            let (pid, _parent, tid) = (fields.u32()?, fields.u32()?, fields.u32()?);
            let attr = &container.attrs[container.attr_of_other(record.body)?];
            let cpu = fields::suffix(record.body, attr)?.cpu?;
            self.exited.insert(cpu, (pid, tid));
            Some(())
        };
        let _ = read();
    }

    /// Notes a `PERF_RECORD_AUX`; `None` if it cannot be read.
    pub(crate) fn chunk(&mut self, container: &Container<'_>, record: &Record<'_>) -> Option<()> {
        let event = container.attr_of_other(record.body)?;
        let attr = &container.attrs[event];
        if !is_aux(attr) {
            return Some(());
        }
        let mut words = Cursor(record.body);
        let (offset, size, flags) = (words.u64()?, words.u64()?, words.u64()?);
        self.gaps += u64::from(flags & LOSSES != 0);
        let mut suffix = fields::suffix(record.body, attr)?;
        // The last record of a task that exited has no thread id any more: the task is the last one that exited on this hart.
        if let (Some(u32::MAX), Some(cpu)) = (suffix.tid, suffix.cpu)
            && let Some((pid, tid)) = self.exited.get(&cpu)
        {
            (suffix.pid, suffix.tid) = (Some(*pid), Some(*tid));
        }
        self.chunks.push(Chunk { event, offset, size, suffix });
        Some(())
    }

    /// Notes a `PERF_RECORD_AUXTRACE`; `None` if it cannot be read.
    pub(crate) fn area(&mut self, record: &Record<'a>) -> Option<()> {
        let mut words = Cursor(record.body);
        let (_size, offset, _reference) = (words.u64()?, words.u64()?, words.u64()?);
        let (_index, thread, hart) = (words.u32()?, words.u32()?, words.u32()?);
        let owner = match hart {
            u32::MAX => Owner::Thread(thread),
            hart => Owner::Hart(hart),
        };
        let area = self.areas.entry(owner).or_default();
        area.insert(offset, record.trailing);
        Some(())
    }

    /// Returns the samples, in the order of time, and how many records are not in the file.
    pub(crate) fn samples(&self, attrs: &[Attr]) -> (Vec<Sample>, u64) {
        let mut samples = Vec::new();
        let mut missing = 0u64;
        // Each area is read once, whatever the file says.
        let mut read: BTreeMap<Owner, u64> = BTreeMap::new();
        for chunk in &self.chunks {
            let of_hart = chunk.suffix.cpu.map(Owner::Hart);
            let of_thread = chunk.suffix.tid.map(Owner::Thread);
            let owner = [of_hart, of_thread].into_iter().flatten();
            let mut areas = owner.filter_map(|owner| Some((owner, self.areas.get(&owner)?)));
            let Some((owner, area)) = areas.next() else {
                missing = missing.saturating_add(chunk.size / PdisRecord::BYTES as u64);
                continue;
            };
            let end = chunk.offset.saturating_add(chunk.size);
            let read = read.entry(owner).or_default();
            let mut at = chunk.offset.max(*read);
            while at < end {
                let Some(bytes) = bytes_at(area, at, end) else {
                    break;
                };
                let records = bytes.chunks_exact(PdisRecord::BYTES);
                let records = records.filter_map(PdisRecord::parse);
                samples.extend(records.map(|r| self.sample(chunk, &attrs[chunk.event], &r)));
                at += bytes.len() as u64;
                *read = at;
            }
            missing = missing.saturating_add(end.saturating_sub(at) / PdisRecord::BYTES as u64);
        }
        samples.sort_by_key(|sample| sample.time);
        (samples, missing)
    }

    fn sample(&self, chunk: &Chunk, attr: &Attr, record: &PdisRecord) -> Sample {
        let converted = self.conversion.map(|to| to.nanoseconds(record.time));
        let (weight, ins_lat, retire_lat) = record.weights();
        Sample {
            event: chunk.event,
            time: converted.or(chunk.suffix.time),
            pid: chunk.suffix.pid,
            tid: chunk.suffix.tid,
            cpu: chunk.suffix.cpu,
            ip: Some(record.pc),
            is_exact: record.is_exact(),
            is_user: record.mode_address() < KERNEL_HALF,
            period: Some(attr.period),
            addr: Some(record.address()),
            phys_addr: Some(record.physical()),
            data_src: Some(record.data_src()),
            weight: Some(weight),
            ins_lat: Some(ins_lat),
            retire_lat: Some(retire_lat),
        }
    }
}

/// True if the event's records are AUX data.
fn is_aux(attr: &Attr) -> bool {
    attr.pmu == "pdis" && attr.config & AUX != 0
}

/// Returns the bytes that the file has of an area from `at` on, up to `end`: whole records, at least one.
fn bytes_at<'a>(area: &BTreeMap<u64, &'a [u8]>, at: u64, end: u64) -> Option<&'a [u8]> {
    let (start, bytes) = area.range(..=at).next_back()?;
    let bytes = bytes.get(usize::try_from(at - start).ok()?..)?;
    let wanted = usize::try_from(end - at).unwrap_or(usize::MAX);
    let whole = bytes.len().min(wanted) / PdisRecord::BYTES * PdisRecord::BYTES;
    (whole > 0).then(|| &bytes[..whole])
}
