//! Maps code made at run time. It moves, and other code takes its place: each mapping precedes the samples that it is for.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use symbols::FunctionId;

use super::{Record, RecordContent, mmap};
use crate::Export;
use crate::images::Image;
use crate::jit::{JitFunctions, file_name};

/// Functions by first address, with the address after each.
type FunctionRanges = BTreeMap<u64, (u64, FunctionId)>;

/// Inserts mappings of `code` (whose files are in `folder`) into records that are in order of time.
pub(super) fn with_mappings(
    export: &Export<'_>,
    code: &JitFunctions,
    folder: &Path,
    records: Vec<Record>,
) -> Vec<Record> {
    let mut mapped: HashMap<u32, FunctionRanges> = HashMap::new();
    let mut all = Vec::with_capacity(records.len());
    for record in records {
        match record.content {
            RecordContent::Range { pid, start, len } => {
                remove(mapped.entry(pid).or_default(), start, start.saturating_add(len));
            }
            RecordContent::Sample(row) => {
                let pid = export.pid(export.rows()[row].process);
                let ranges = mapped.entry(pid).or_default();
                for row in export.stack(row) {
                    let function = export.location(row).function;
                    let Some(at) = code.functions.get(&function) else {
                        continue;
                    };
                    let end = at.start.saturating_add(at.size);
                    if ranges.get(&at.start) == Some(&(end, function)) {
                        continue;
                    }
                    remove(ranges, at.start, end);
                    ranges.insert(at.start, (end, function));
                    let image = Image {
                        start: at.start,
                        len: at.size,
                        file_offset: at.offset,
                        path: folder.join(file_name(export, at.module)).display().to_string(),
                        build_id: Vec::new(),
                    };
                    all.push(mmap(export, &image, record.cycle, pid));
                }
            }
            RecordContent::Nothing => {}
        }
        all.push(record);
    }
    all
}

/// Removes the functions that overlap a range. The functions in `ranges` do not overlap each other.
fn remove(ranges: &mut FunctionRanges, start: u64, end: u64) {
    let before = ranges.range(..start).next_back();
    let reaches_in = before.filter(|(_, (to, _))| *to > start).map(|(at, _)| *at);
    let inside = ranges.range(start..end.max(start)).map(|(at, _)| *at);
    let gone: Vec<u64> = reaches_in.into_iter().chain(inside).collect();
    for at in gone {
        ranges.remove(&at);
    }
}
