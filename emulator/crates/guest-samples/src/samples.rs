//! All samples of a file, whatever their events are.

use std::collections::BTreeMap;
use std::path::Path;

use super::attr::Attr;
use super::aux::AuxData;
use super::container::{Container, RecordType};
use super::cursor::{Cursor, text};
use super::data_src::DataSrc;
use super::event_sample::Sample;
use super::{PerfDataError, fields, sample};

/// `PERF_RECORD_MISC_EXACT_IP`.
const EXACT_IP: u16 = 1 << 14;
/// `PERF_RECORD_MISC_CPUMODE_MASK`.
const MODES: u16 = 7;

/// A `perf.data` file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleFile {
    /// The file's name.
    pub file: String,
    /// The events that the file has samples of.
    pub events: Vec<SampledEvent>,
    /// The samples in the file's order, and after them those of AUX data (`pdis/…,aux=1/`) in the order of time.
    pub samples: Vec<Sample>,
    /// The mappings of processes, in order: those of code, and those of data if perf recorded them.
    pub mappings: Vec<MappingRecord>,
    /// Last command name of each process id.
    pub commands: BTreeMap<u32, String>,
    /// Samples that the kernel dropped.
    pub lost: u64,
    /// Times that AUX data were lost because they did not fit; how many records were lost is not known.
    pub aux_gaps: u64,
    /// Times that perf stopped an event, as it sampled too often.
    pub throttled: u64,
    /// Sample records that could not be read.
    pub malformed: u64,
}

/// An event of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampledEvent {
    /// The event's name as it was asked for, such as `branch-misses:upp`.
    pub name: String,
    /// Name of the event's PMU; empty if the file does not have it.
    pub pmu: String,
    /// Number of the event's PMU: `perf_event_attr.type`.
    pub kind: u32,
    /// The event's configuration in its PMU: `perf_event_attr.config`.
    pub config: u64,
    /// More of the event's configuration: `config1` and `config2`.
    pub more_config: [u64; 2],
    /// Events between samples, or samples per second if [`Self::is_frequency`].
    pub period: u64,
    /// True if `period` is a frequency in Hz.
    pub is_frequency: bool,
    /// The precision that was asked for: the number of `p` modifiers.
    pub precise: u8,
    /// Whether each privilege mode (0 U, 1 S, 3 M) was sampled.
    pub covers: [bool; 4],
}

/// A file that a process mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappingRecord {
    /// Process id; that of the kernel is `u32::MAX`.
    pub pid: u32,
    /// First virtual address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Offset of `start` in the file, in bytes.
    pub file_offset: u64,
    /// Path in the guest, or a name in brackets.
    pub path: String,
}

impl SampleFile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or is not a `perf.data` file that perf wrote to a file and without compression.
    pub fn read(path: &Path) -> Result<Self, PerfDataError> {
        let mut file = Self::parse(&super::read(path)?)?;
        let name = path.file_name().unwrap_or_default();
        file.file = name.to_string_lossy().into_owned();
        Ok(file)
    }

    /// Reads all samples from the bytes of a file.
    ///
    /// # Errors
    /// If the bytes are not a `perf.data` file that perf wrote to a file and without compression.
    pub fn parse(bytes: &[u8]) -> Result<Self, PerfDataError> {
        let container = Container::parse(bytes)?;
        let mut out =
            Self { events: container.attrs.iter().map(event).collect(), ..Self::default() };
        let mut aux = AuxData::default();
        for record in container.records() {
            let record = record?;
            match record.kind {
                RecordType::Sample => {
                    let found = container.attr_of(record.body).and_then(|at| {
                        read_sample(record.body, record.misc, at, &container.attrs[at])
                    });
                    match found {
                        Some(sample) => out.samples.push(sample),
                        None => out.malformed += 1,
                    }
                }
                RecordType::Comm => out.commands.extend(sample::command(record.body)),
                RecordType::Mmap | RecordType::Mmap2 => {
                    let fixed = match record.kind {
                        RecordType::Mmap => 32,
                        _ => 64,
                    };
                    out.mappings.extend(mapping(record.body, fixed));
                }
                RecordType::Throttle => out.throttled += 1,
                RecordType::Lost | RecordType::LostSamples => {
                    out.lost = out.lost.saturating_add(record.lost());
                }
                RecordType::Exit => aux.exit(&container, &record),
                RecordType::Aux => {
                    out.malformed += u64::from(aux.chunk(&container, &record).is_none());
                }
                RecordType::AuxTrace => out.malformed += u64::from(aux.area(&record).is_none()),
                RecordType::TimeConversion => aux.convert_time(&record),
                RecordType::Other => {}
            }
        }
        let (samples, missing) = aux.samples(&container.attrs);
        out.samples.extend(samples);
        out.malformed = out.malformed.saturating_add(missing);
        out.aux_gaps = aux.gaps;
        Ok(out)
    }

    /// The mapping that a process had at an address, the last one of those that hold it.
    pub fn mapping(&self, pid: u32, address: u64) -> Option<&MappingRecord> {
        let holds = |m: &&MappingRecord| m.pid == pid && address.wrapping_sub(m.start) < m.len;
        self.mappings.iter().rev().find(holds)
    }
}

fn event(attr: &Attr) -> SampledEvent {
    SampledEvent {
        name: attr.name.clone(),
        pmu: attr.pmu.clone(),
        kind: attr.kind,
        config: attr.config,
        more_config: attr.more_config,
        period: attr.period,
        is_frequency: attr.is_frequency,
        precise: attr.precise,
        covers: [!attr.exclude_user, !attr.exclude_kernel, false, !attr.exclude_machine],
    }
}

fn read_sample(body: &[u8], misc: u16, event: usize, attr: &Attr) -> Option<Sample> {
    let found = fields::parse(body, attr)?;
    let packed = fields::weight_is_packed(attr);
    let part = |from: u32| found.weight.filter(|_| packed).map(|weight| (weight >> from) as u16);
    let fixed = || (!attr.is_frequency).then_some(attr.period);
    Some(Sample {
        event,
        time: found.time,
        pid: found.thread.map(|thread| thread as u32),
        tid: found.thread.map(|thread| (thread >> 32) as u32),
        cpu: found.cpu.map(|cpu| cpu as u32),
        ip: found.ip,
        is_exact: misc & EXACT_IP != 0,
        is_user: misc & MODES == 2,
        period: found.period.or_else(fixed),
        addr: found.addr,
        phys_addr: found.phys_addr,
        data_src: found.data_src.map(DataSrc),
        weight: found.weight.map(|weight| match packed {
            true => weight & 0xffff_ffff,
            false => weight,
        }),
        ins_lat: part(32),
        retire_lat: part(48),
    })
}

/// `PERF_RECORD_MMAP`, or `…MMAP2` with more before the name.
fn mapping(body: &[u8], fixed: usize) -> Option<MappingRecord> {
    let mut fields = Cursor(body);
    let (pid, _tid) = (fields.u32()?, fields.u32()?);
    Some(MappingRecord {
        pid,
        start: fields.u64()?,
        len: fields.u64()?,
        file_offset: fields.u64()?,
        path: text(body.get(fixed..)?),
    })
}
