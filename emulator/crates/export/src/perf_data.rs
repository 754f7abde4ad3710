//! Linux's perf.data, as a file (tools/perf/Documentation/perf.data-file-format.txt).
//!
//! An event per profiler, a record per sample. Files have their paths on this host if it has them, so
//! that perf finds them, and the guest's build IDs. Kernel and firmware are files that every process maps: if they were
//! marked as a kernel, perf would use the host's kernel instead. Code made at run time is in files of [`JitFunctions`].

mod bytes;
mod header;
mod present;

use std::collections::BTreeSet;
use std::io::{self, Write};

use profile::{Process, Thread};

use super::images::Image;
use super::jit::JitFunctions;
use super::model::{CycleSample, Series};
use super::{Export, Format};
use bytes::Bytes;
use header::{Event, Header};

const COMM: u32 = 3;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
/// Privilege in a record's flags. It is always the user's: see the module's documentation on the kernel.
const MISC_USER: u16 = 2;
/// A COMM record of `execve`.
const MISC_COMM_EXEC: u16 = 1 << 13;
/// An MMAP2 record has a build id instead of an inode.
const MISC_BUILD_ID: u16 = 1 << 14;
/// Longest build id of an MMAP2 record.
const MAX_BUILD_ID: usize = 20;
/// Longest name of a thread in Linux.
const MAX_NAME: usize = 15;
/// Longest path in Linux.
const MAX_PATH: usize = 4096;
const READ_AND_EXECUTE: u32 = 5;
/// Longest call chain that perf shows unless told otherwise (`kernel.perf_event_max_stack`).
const MAX_CHAIN: usize = 127;
/// Prefix of paths that perf always reads as textual symbol maps.
const PERF_MAP_PREFIX: &str = "/tmp/perf-";
/// Marks the next addresses in a call chain as the user's (`PERF_CONTEXT_USER`), as for [`MISC_USER`].
const CONTEXT_USER: u64 = -512i64 as u64;

/// A record with its cycle in the stream.
struct Record {
    cycle: u64,
    bytes: Bytes,
    content: RecordContent,
}

/// A record's content, as far as addresses are concerned.
#[derive(Clone, Copy)]
enum RecordContent {
    Nothing,
    /// The addresses are mapped to a file from now on.
    Range {
        pid: u32,
        start: u64,
        len: u64,
    },
    /// A sample of a row, by index, and of its callers.
    Sample(usize),
}

pub(super) fn write(export: &Export<'_>, out: &mut dyn Write) -> io::Result<()> {
    let series = export.series();
    let mut records = Vec::new();
    let used: BTreeSet<_> = export.rows().iter().map(|row| row.process).collect();
    let shared = export.shared_images();
    for process in &export.evaluation.processes {
        if used.contains(&process.id) {
            describe(export, process, &shared, &mut records);
        }
    }
    let used: BTreeSet<_> = export.rows().iter().map(|row| row.thread).collect();
    for thread in used.into_iter().filter_map(|id| export.thread(id)) {
        name(export, thread, &mut records);
    }
    let mut events = Vec::new();
    for ((series, samples), id) in series.iter().zip(&export.timed().samples).zip(1..) {
        records.extend(samples.iter().map(|at| sample(export, id, at)));
        events.push(event(series, id));
    }
    // Stable: a process is described before its samples of the same cycle.
    records.sort_by_key(|record| record.cycle);
    if let Some(folder) = export.options.jit_folder {
        let code = JitFunctions::of(export);
        if !code.functions.is_empty() {
            records = present::with_mappings(export, &code, folder, records);
        }
    }
    let times = (
        records.first().map_or(0, |record| export.nanos(record.cycle)),
        records.last().map_or(0, |record| export.nanos(record.cycle)),
    );
    let header = Header {
        events: &events,
        data_bytes: records.iter().map(|record| record.bytes.0.len() as u64).sum(),
        name: &format!("{}, {}", export.title(), export.exporter(Format::PerfData)),
        times,
        call_chains: export.has_call_stacks(),
    };
    out.write_all(&header.before())?;
    for record in records {
        out.write_all(&record.bytes.0)?;
    }
    out.write_all(&header.after())
}

fn event(series: &Series<'_>, id: u64) -> Event {
    Event { name: series.name.to_owned(), id, period: series.period }
}

/// Name and mappings of a process. A mapping that replaces another one comes at its time, the
/// others at the process's start: the guest may report one a little after its code first runs.
fn describe(export: &Export<'_>, process: &Process, shared: &[Image], records: &mut Vec<Record>) {
    let pid = export.pid(process.id);
    let start = process.first_cycle;
    let misc = if process.generation > 0 { MISC_COMM_EXEC } else { 0 };
    records.push(comm(export, misc, start, (pid, pid), &process.name));
    for image in shared {
        records.push(mmap(export, image, start, pid));
    }
    for (at, mapping) in process.mappings.iter().enumerate() {
        let replaces = process.mappings[..at].iter().any(|before| {
            before.start < mapping.start.saturating_add(mapping.len)
                && mapping.start < before.start.saturating_add(before.len)
        });
        let cycle = if replaces { mapping.since.max(start) } else { start };
        records.push(mmap(export, &export.image(mapping), cycle, pid));
    }
}

/// The names of a thread over time. Its process's first thread has the process's name, unless it changes.
fn name(export: &Export<'_>, thread: &Thread, records: &mut Vec<Record>) {
    let pid = export.pid(thread.process);
    if thread.tid == pid && thread.names.len() == 1 {
        return;
    }
    for (cycle, name) in &thread.names {
        records.push(comm(export, 0, *cycle, (pid, thread.tid), name));
    }
}

fn comm(export: &Export<'_>, misc: u16, cycle: u64, (pid, tid): (u32, u32), name: &str) -> Record {
    let mut body = Bytes::default();
    let name = &name[..name.floor_char_boundary(MAX_NAME)];
    body.u32(pid).u32(tid).padded(name);
    record(export, COMM, misc, cycle, (pid, 1), body)
}

fn mmap(export: &Export<'_>, image: &Image, cycle: u64, pid: u32) -> Record {
    let mut body = Bytes::default();
    body.u32(pid).u32(pid).u64(image.start).u64(image.len).u64(image.file_offset);
    let id = &image.build_id[..image.build_id.len().min(MAX_BUILD_ID)];
    let misc = if id.is_empty() { MISC_USER } else { MISC_USER | MISC_BUILD_ID };
    // A mapping without a build id has device, inode and generation 0.
    let mut padded = [0; MAX_BUILD_ID];
    padded[..id.len()].copy_from_slice(id);
    body.u32(id.len() as u32).raw(&padded);
    body.u32(READ_AND_EXECUTE).u32(0);
    // perf would take its own process's vdso for the guest's.
    let mut path = image.path.replace("[vdso]", "[guest-vdso]");
    if path.starts_with(PERF_MAP_PREFIX) {
        path.insert_str(0, "/.");
    }
    body.padded(&path[..path.floor_char_boundary(MAX_PATH)]);
    let mut record = record(export, MMAP2, misc, cycle, (pid, 1), body);
    let (start, len) = (image.start, image.len);
    record.content = RecordContent::Range { pid, start, len };
    record
}

fn sample(export: &Export<'_>, id: u64, at: &CycleSample) -> Record {
    let pid = export.pid(export.rows()[at.row].process);
    let mut body = Bytes::default();
    let tid = export.tid(at.row);
    body.u64(id).u64(export.address(at.row)).u32(pid).u32(tid);
    body.u64(export.nanos(at.cycle)).u64(at.cycles);
    if export.has_call_stacks() {
        let rows = export.stack(at.row).take(MAX_CHAIN);
        let addresses: Vec<u64> = rows.map(|row| export.address(row)).collect();
        body.u64(addresses.len() as u64 + 1).u64(CONTEXT_USER);
        addresses.iter().for_each(|pc| _ = body.u64(*pc));
    }
    Record {
        cycle: at.cycle,
        bytes: body.record(SAMPLE, MISC_USER),
        content: RecordContent::Sample(at.row),
    }
}

/// A record other than a sample ends in thread, time and event.
fn record(
    export: &Export<'_>,
    kind: u32,
    misc: u16,
    cycle: u64,
    (pid, id): (u32, u64),
    mut body: Bytes,
) -> Record {
    body.u32(pid).u32(pid).u64(export.nanos(cycle)).u64(id);
    Record { cycle, bytes: body.record(kind, misc), content: RecordContent::Nothing }
}
