//! The file around the records (Linux: tools/perf/Documentation/perf.data-file-format.txt).

use std::collections::HashMap;

use super::PerfDataError;
use super::attr::Attr;
use super::cursor::{Cursor, text, word};
use super::fields;

/// Magic number at the begin of a file.
pub(crate) const MAGIC: &[u8] = b"PERFILE2";
const HEADER_BYTES: u64 = 104;
const PIPE_HEADER_BYTES: u64 = 16;
/// Feature bits of the sections that have the events' names, and the PMUs'.
const FEATURE_EVENT_DESC: usize = 12;
const FEATURE_PMU_MAPPINGS: usize = 16;

/// A parsed header.
pub(crate) struct Container<'a> {
    pub attrs: Vec<Attr>,
    by_id: HashMap<u64, usize>,
    data: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordType {
    Sample,
    Comm,
    Exit,
    Lost,
    LostSamples,
    Throttle,
    Mmap,
    Mmap2,
    Aux,
    AuxTrace,
    TimeConversion,
    Other,
}

/// A record without its header.
pub(crate) struct Record<'a> {
    pub kind: RecordType,
    /// `PERF_RECORD_MISC_…` bits.
    pub misc: u16,
    pub body: &'a [u8],
    /// Data that the record's size does not cover.
    pub trailing: &'a [u8],
}

impl Record<'_> {
    /// Samples that a record of the kernel's says it dropped.
    pub(crate) fn lost(&self) -> u64 {
        let at = match self.kind {
            RecordType::Lost => 8,
            RecordType::LostSamples => 0,
            _ => return 0,
        };
        word(self.body, at).unwrap_or(0)
    }
}

impl<'a> Container<'a> {
    pub(crate) fn parse(file: &'a [u8]) -> Result<Self, PerfDataError> {
        let mut header = Cursor(file);
        if header.bytes(MAGIC.len()) != Some(MAGIC) {
            return Err(PerfDataError::NotPerfData);
        }
        let mut word = || header.u64().ok_or(PerfDataError::Damaged("header"));
        let size = word()?;
        if size == PIPE_HEADER_BYTES {
            return Err(PerfDataError::Pipe);
        }
        if size < HEADER_BYTES {
            return Err(PerfDataError::Damaged("header size"));
        }
        let attr_size = word()?;
        let attrs = (word()?, word()?);
        let data = (word()?, word()?);
        let _event_types = (word()?, word()?);
        let features = [word()?, word()?, word()?, word()?];

        let mut attrs =
            read_attrs(file, attrs, attr_size).ok_or(PerfDataError::Damaged("events"))?;
        // A recorder that was killed leaves the length at 0: the records go to the end of the file.
        let (start, length) = data;
        let length = if length == 0 { (file.len() as u64).saturating_sub(start) } else { length };
        let records =
            section(file, (start, length)).ok_or(PerfDataError::Damaged("data section"))?;
        let table = start.saturating_add(length);
        if let Some(names) = feature(file, table, features, FEATURE_EVENT_DESC) {
            name_events(&mut attrs, names);
        }
        if let Some(names) = feature(file, table, features, FEATURE_PMU_MAPPINGS) {
            name_pmus(&mut attrs, names);
        }
        let by_id = attrs
            .iter()
            .enumerate()
            .flat_map(|(index, attr)| attr.ids.iter().map(move |id| (*id, index)))
            .collect();
        Ok(Self { attrs, by_id, data: records })
    }

    /// The indices of the events with this name, modifiers aside, and of those of the PMU with this name; at least one.
    pub(crate) fn events(&self, wanted: &str) -> Result<Vec<usize>, PerfDataError> {
        let plain = |name: &str| name.split([':', '/']).next().unwrap_or("") == wanted;
        let is_wanted = |attr: &Attr| plain(&attr.name) || attr.pmu == wanted;
        let found = (0..self.attrs.len()).filter(|index| is_wanted(&self.attrs[*index]));
        let found: Vec<usize> = found.collect();
        if found.is_empty() {
            return Err(PerfDataError::NoEvent {
                wanted: wanted.to_owned(),
                found: self.attrs.iter().map(|attr| attr.name.clone()).collect(),
            });
        }
        Ok(found)
    }

    /// The event that a sample record belongs to.
    pub(crate) fn attr_of(&self, body: &[u8]) -> Option<usize> {
        if self.attrs.len() == 1 {
            return Some(0);
        }
        // perf gives all events of a session the same place for the id.
        let id = fields::id(body, self.attrs.first()?.sample_type)?;
        self.by_id.get(&id).copied()
    }

    /// The event that another record belongs to, by the id at its end.
    pub(crate) fn attr_of_other(&self, body: &[u8]) -> Option<usize> {
        if self.attrs.len() == 1 {
            return Some(0);
        }
        let id = fields::suffix(body, self.attrs.first()?)?.id?;
        self.by_id.get(&id).copied()
    }

    pub(crate) fn records(
        &self,
    ) -> impl Iterator<Item = Result<Record<'a>, PerfDataError>> + use<'a> {
        let mut rest = Cursor(self.data);
        std::iter::from_fn(move || {
            if rest.0.is_empty() {
                return None;
            }
            let record = next_record(&mut rest);
            if record.is_err() {
                rest = Cursor(&[]);
            }
            Some(record)
        })
    }
}

fn next_record<'a>(rest: &mut Cursor<'a>) -> Result<Record<'a>, PerfDataError> {
    let mut read = || {
        let (kind, misc, size) = (rest.u32()?, rest.u16()?, rest.u16()?);
        Some((kind, misc, rest.bytes(usize::from(size).checked_sub(8)?)?))
    };
    let (kind, misc, body) =
        read().ok_or(PerfDataError::Damaged("a record reaches beyond the file"))?;
    let mut trailing = &[][..];
    let kind = match kind {
        1 => RecordType::Mmap,
        2 => RecordType::Lost,
        3 => RecordType::Comm,
        4 => RecordType::Exit,
        5 => RecordType::Throttle,
        9 => RecordType::Sample,
        10 => RecordType::Mmap2,
        11 => RecordType::Aux,
        13 => RecordType::LostSamples,
        71 => {
            let size = word(body, 0).unwrap_or(0);
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            trailing = rest.bytes(size).ok_or(PerfDataError::Damaged("auxiliary trace"))?;
            RecordType::AuxTrace
        }
        79 => RecordType::TimeConversion,
        81 | 83 => return Err(PerfDataError::Compressed),
        _ => RecordType::Other,
    };
    Ok(Record { kind, misc, body, trailing })
}

fn section(file: &[u8], (offset, size): (u64, u64)) -> Option<&[u8]> {
    let offset = usize::try_from(offset).ok()?;
    file.get(offset..offset.checked_add(usize::try_from(size).ok()?)?)
}

/// Each entry is a `perf_event_attr`, whose size grew over the years, and the section of its ids.
fn read_attrs(file: &[u8], place: (u64, u64), attr_size: u64) -> Option<Vec<Attr>> {
    let entry = usize::try_from(attr_size).ok().filter(|size| *size >= 16 + 64)?;
    let mut attrs = Vec::new();
    for bytes in section(file, place)?.chunks_exact(entry) {
        let (attr, ids) = bytes.split_at(entry - 16);
        let mut fields = Cursor(attr);
        let (kind, _size, config) = (fields.u32()?, fields.u32()?, fields.u64()?);
        let period = fields.u64()?;
        let (sample_type, read_format, flags) = (fields.u64()?, fields.u64()?, fields.u64()?);
        // Older and shorter ones have no such fields.
        let later = |offset: usize| word(attr, offset).unwrap_or(0);
        let mut ids = Cursor(ids);
        let mut ids = Cursor(section(file, (ids.u64()?, ids.u64()?))?);
        attrs.push(Attr {
            name: format!("type {kind}"),
            kind,
            pmu: String::new(),
            config,
            more_config: [56, 64].map(later),
            period,
            is_frequency: flags >> 10 & 1 != 0,
            exclude_user: flags >> 4 & 1 != 0,
            exclude_kernel: flags >> 5 & 1 != 0,
            exclude_machine: flags >> 6 & 1 != 0,
            sample_type,
            read_format,
            precise: (flags >> 15 & 3) as u8,
            branch_sample_type: later(72),
            sample_regs_user: later(80),
            sample_regs_intr: later(96),
            ids: std::iter::from_fn(|| ids.u64()).collect(),
        });
    }
    (!attrs.is_empty()).then_some(attrs)
}

/// The bytes of a feature: the sections of the features that are present follow the data, in order of their bits.
fn feature(file: &[u8], table: u64, features: [u64; 4], wanted: usize) -> Option<&[u8]> {
    let present = |bit: usize| features[bit / 64] >> (bit % 64) & 1 != 0;
    if !present(wanted) {
        return None;
    }
    let before = (0..wanted).filter(|bit| present(*bit)).count() as u64;
    let mut entry = Cursor(section(file, (table.checked_add(16 * before)?, 16))?);
    section(file, (entry.u64()?, entry.u64()?))
}

/// Names events in order; what cannot be read stays unnamed.
fn name_events(attrs: &mut [Attr], description: &[u8]) {
    let mut rest = Cursor(description);
    let mut read = || {
        let (count, attr_size) = (rest.u32()?, rest.u32()?);
        for attr in attrs.iter_mut().take(count as usize) {
            rest.bytes(attr_size as usize)?;
            let ids = rest.u32()?;
            let length = rest.u32()?;
            attr.name = text(rest.bytes(length as usize)?);
            rest.skip_words(ids.into())?;
        }
        Some(())
    };
    let _ = read();
}

/// Names the PMUs of events, as far as that can be read.
fn name_pmus(attrs: &mut [Attr], mappings: &[u8]) {
    let mut rest = Cursor(mappings);
    let mut read = || {
        for _ in 0..rest.u32()? {
            let (kind, length) = (rest.u32()?, rest.u32()?);
            let name = text(rest.bytes(length as usize)?);
            for attr in attrs.iter_mut().filter(|attr| attr.kind == kind) {
                attr.pmu.clone_from(&name);
            }
        }
        Some(())
    };
    let _ = read();
}
