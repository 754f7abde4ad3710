//! Perfetto's trace (<https://perfetto.dev/docs/reference/trace-packet-proto>): the Oracle's cycle
//! stacks over time, a counter per category for each hart and for each process on it.
//!
//! A counter holds the share of a window's cycles, in percent, from the window's start to its end.

pub(super) mod proto;

use std::collections::BTreeMap;
use std::io::{self, Write};

use commit_trace::HartId;
use profile::{CATEGORIES, ProcessId, Window};
use prost::Message;

use super::Export;
use proto::{Counter, Packet, Track, TrackEvent};

/// Number of the packet sequence. Every packet belongs to one; here there is only one.
const SEQUENCE: u32 = 1;
/// `TrackEvent.Type.TYPE_COUNTER`.
const COUNTER: i32 = 4;
/// `TrackDescriptor.ChildTracksOrdering.EXPLICIT`.
const EXPLICIT: i32 = 3;
/// The published categories, then idle.
const COUNTERS: usize = CATEGORIES.len() + 1;

pub(super) fn write(export: &Export<'_>, out: &mut dyn Write) -> io::Result<()> {
    let harts: Vec<&[Window]> =
        export.windows.chunk_by(|one, next| one.hart == next.hart).collect();
    for windows in &harts {
        let hart = (harts.len() > 1).then(|| windows[0].hart);
        write_hart(export, hart, windows, out)?;
    }
    Ok(())
}

/// The counters of a hart, which has a number if there are several.
fn write_hart(
    export: &Export<'_>,
    hart: Option<HartId>,
    windows: &[Window],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut writer = Writer { export, hart, out, shown: BTreeMap::new() };
    writer.describe(None)?;
    let mut before: Option<&Window> = None;
    for window in windows {
        if let Some(before) = before.filter(|before| before.end != window.start) {
            writer.values(before.end, &BTreeMap::new())?;
        }
        let shares = shares(export, window);
        writer.values(window.start, &shares)?;
        before = Some(window);
    }
    match before {
        Some(last) => writer.values(last.end, &BTreeMap::new()),
        None => Ok(()),
    }
}

type Shares = [f64; COUNTERS];

/// Percent of the window's cycles, by process and for all.
fn shares(export: &Export<'_>, window: &Window) -> BTreeMap<Option<ProcessId>, Shares> {
    let units = export.evaluation.oracle.units_per_cycle().max(1);
    let busy: u64 = window.stacks.iter().flat_map(|(_, stack)| stack).sum();
    let idle = window.idle * units;
    let percent = |part: u64| 100.0 * part as f64 / (busy + idle).max(1) as f64;
    let mut shares = BTreeMap::new();
    let mut all = [0; CATEGORIES.len()];
    for (process, stack) in &window.stacks {
        let mut share = [0.0; COUNTERS];
        for (at, part) in stack.iter().enumerate() {
            share[at] = percent(*part);
            all[at] += part;
        }
        shares.insert(Some(*process), share);
    }
    let mut share = [0.0; COUNTERS];
    share.iter_mut().zip(all).for_each(|(share, part)| *share = percent(part));
    share[COUNTERS - 1] = percent(idle);
    shares.insert(None, share);
    shares
}

struct Writer<'a> {
    export: &'a Export<'a>,
    hart: Option<HartId>,
    out: &'a mut dyn Write,
    /// The present value of each process's counters.
    shown: BTreeMap<Option<ProcessId>, Shares>,
}

impl Writer<'_> {
    /// Sets the counters from `cycle` on. Processes without new values did not run.
    fn values(
        &mut self,
        cycle: u64,
        values: &BTreeMap<Option<ProcessId>, Shares>,
    ) -> io::Result<()> {
        for process in values.keys() {
            if process.is_some() && !self.shown.contains_key(process) {
                self.describe(*process)?;
            }
        }
        let known: Vec<_> = self.shown.keys().copied().collect();
        for process in known {
            let now = values.get(&process).copied().unwrap_or([0.0; COUNTERS]);
            let before = self.shown.insert(process, now);
            for (counter, value) in now.into_iter().enumerate() {
                if before.is_none_or(|before| before[counter] != value) {
                    self.packet(Packet {
                        timestamp: self.export.nanos(cycle),
                        event: Some(TrackEvent {
                            r#type: COUNTER,
                            track: self.track_of(process) + 1 + counter as u64,
                            value,
                        }),
                        ..Packet::default()
                    })?;
                }
            }
        }
        Ok(())
    }

    /// The tracks of a process, or of the whole hart.
    fn describe(&mut self, process: Option<ProcessId>) -> io::Result<()> {
        let parent = self.track_of(process);
        let mut name = match process {
            Some(process) => self.export.process_name(process).to_owned(),
            None => format!("cycle stack of {}", self.export.title()),
        };
        if let Some(hart) = self.hart {
            name.push_str(&format!(", hart {}", hart.0));
        }
        self.track(Track {
            id: parent,
            name: name.clone(),
            ordering: EXPLICIT,
            rank: self.place(process) as i32 - 1,
            ..Track::default()
        })?;
        let names = CATEGORIES.into_iter().chain(["idle"]);
        for (rank, counter) in
            (0..).zip(names).filter(|(_, name)| process.is_none() || *name != "idle")
        {
            self.track(Track {
                id: parent + 1 + rank as u64,
                name: counter.to_owned(),
                parent,
                rank,
                counter: Some(Counter {
                    unit: "%".to_owned(),
                    // One scale for all counters of a process.
                    scale: name.clone(),
                }),
                ..Track::default()
            })?;
        }
        self.shown.insert(process, [0.0; COUNTERS]);
        Ok(())
    }

    /// The place of a process, or of the whole hart, among all tracks with counters.
    fn place(&self, process: Option<ProcessId>) -> u64 {
        let hart = self.hart.map_or(0, |hart| u64::from(hart.0));
        let of_hart = self.export.evaluation.processes.len() as u64 + 1;
        hart * of_hart + process.map_or(0, |process| u64::from(process.0) + 1)
    }

    /// Number of a track; its counters' follow. 0 would be the default track.
    fn track_of(&self, process: Option<ProcessId>) -> u64 {
        100 * (1 + self.place(process))
    }

    fn track(&mut self, track: Track) -> io::Result<()> {
        self.packet(Packet { track: Some(track), ..Packet::default() })
    }

    /// Writes a packet as an element of the message `Trace`.
    fn packet(&mut self, packet: Packet) -> io::Result<()> {
        let trace = proto::Trace { packet: vec![Packet { sequence: SEQUENCE, ..packet }] };
        self.out.write_all(&trace.encode_to_vec())
    }
}
