//! A TIP unit on the bus: offsets become register names, side-band records become guest context.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use devices::{AccessFault, Cx, Device};
use interpreters::{Image, is_python};
use profile::{BusyHarts, MIN_SCRIPT_KIND};
use snapshot::{Archive, Snapshot};
use tip_device::{Reg, SideBandRecord, TipUnit, WriteEffect, regs};

use crate::commit_stage::{SharedTip, TipPort};
use crate::script_sampler::RunningThread;

/// The unit as a device.
#[derive(Debug)]
pub(crate) struct TipBus {
    tip: SharedTip,
    /// TIP units of the other harts.
    others: Vec<SharedTip>,
    tag: GuestTag,
}

impl TipBus {
    /// Puts the unit of a hart that watches `guest_tag` on a bus, and that tells which thread is `running`; all units know of the same `programs`.
    pub(crate) fn new(
        tip: SharedTip,
        others: Vec<SharedTip>,
        guest_tag: Rc<Cell<u64>>,
        running: RunningThread,
        programs: Rc<RefCell<Programs>>,
    ) -> Self {
        let tag = GuestTag { cell: guest_tag, running, is_busy: false, programs };
        Self { tip, others, tag }
    }
}

impl TipBus {
    /// Writes to memory the samples that are on their way there. Not modelled: the time that this takes on the bus.
    fn write_samples(&self, cx: &mut Cx<'_>) {
        if !self.tip.read(TipUnit::has_samples_to_write) {
            return;
        }
        self.tip.change(|TipPort { unit, .. }| {
            while let Some((address, sample)) = unit.next_to_write() {
                let bytes = sample.bytes(cx.mtime(sample.cycle));
                if cx.ram.write(address, &bytes).is_none() {
                    unit.write_failed(&sample);
                }
            }
        });
    }
}

snapshot::snapshot!(TipBus { tip, tag } keeps { others });

impl Device for TipBus {
    fn read(&mut self, offset: u64, size: u8, cx: &mut Cx<'_>) -> Result<u64, AccessFault> {
        let reg = (size == 8).then(|| Reg::at(offset)).flatten().ok_or(AccessFault)?;
        self.write_samples(cx);
        Ok(self.tip.read(|unit| unit.read(reg, cx.now)))
    }

    fn write(
        &mut self,
        offset: u64,
        size: u8,
        value: u64,
        cx: &mut Cx<'_>,
    ) -> Result<(), AccessFault> {
        let reg = (size == 8).then(|| Reg::at(offset)).flatten().ok_or(AccessFault)?;
        self.write_samples(cx);
        self.tip.change(|tip| {
            if let WriteEffect::SideBand(mut record) = tip.unit.write(reg, value, cx.now) {
                // The simulator's own types are none of the guest's.
                if record.kind >= MIN_SCRIPT_KIND {
                    record.kind = 0;
                }
                let busy = self.tag.follow(&record);
                // Every stream knows all processes; what runs and wakes is a hart's own.
                if !matches!(record.kind, regs::SB_SWITCH | regs::SB_WAKE) {
                    for other in &self.others {
                        other.change(|other| other.push_side_band(record.clone()));
                    }
                }
                tip.push_side_band(record);
                if let Some(busy) = busy {
                    tell_busy(tip, &self.others, busy);
                }
            }
        });
        Ok(())
    }

    fn raised(&mut self, cx: &mut Cx<'_>) {
        self.write_samples(cx);
    }

    fn irq_level(&self) -> bool {
        self.tip.read(TipUnit::irq)
    }
}

/// Tells the streams of all harts, if there are several, how many harts are busy from here on.
fn tell_busy(own: &mut TipPort, others: &[SharedTip], busy: BusyHarts) {
    if others.is_empty() {
        return;
    }
    let (kind, bytes) = busy.encode();
    let record = SideBandRecord { kind, bytes };
    for other in others {
        other.change(|other| other.push_busy(record.clone()));
    }
    own.push_busy(record);
}

/// The programs that processes run.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    /// Number of each process's program, by process: the programs that had been started when it was.
    of: HashMap<u32, u32>,
    started: u32,
    /// The interpreter that each process runs, by process: number of the program that mapped it, with the address and length of
    /// its code.
    interpreters: HashMap<u32, (u32, (u64, u64))>,
    /// Number of harts that run another thread than their idle one, as far as the guest has told.
    busy: u8,
}

snapshot::snapshot!(Programs { of, started, interpreters, busy });

impl Programs {
    /// The interpreter in a process, with a number of its program.
    pub(crate) fn interpreter(&self, pid: u32) -> Option<(u64, Image)> {
        let (program, (start, len)) = *self.interpreters.get(&pid)?;
        Some((program.into(), Image { start, len }))
    }

    /// A process mapped a file's code, as the bytes of a side-band record say.
    fn mapped(&mut self, pid: u32, bytes: &[u8]) {
        let number = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let path = bytes.get(MMAP_PATH..).unwrap_or_default();
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        let Ok(path) = std::str::from_utf8(path) else {
            return;
        };
        if let Some(mapped) = number(8).zip(number(16))
            && is_python(path)
        {
            // The executable comes first; the library, if the runtime is there, later.
            self.interpreters.insert(pid, (self.started, mapped));
        }
    }
}

/// The kernel's number of all harts' idle threads.
const IDLE_TID: u32 = 0;

/// Where the path begins in the bytes of a side-band record of a mapping.
const MMAP_PATH: usize = 56;

/// Tells the hart which program runs: (programs started when it was, process). Two programs of one
/// process, before and after `exec`, are different address spaces to the profilers.
#[derive(Debug)]
struct GuestTag {
    cell: Rc<Cell<u64>>,
    running: RunningThread,
    /// Whether the hart runs another thread than its idle one, as far as the guest has told.
    is_busy: bool,
    programs: Rc<RefCell<Programs>>,
}

/// Every unit saves the programs.
impl Snapshot for GuestTag {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self { cell: _, running, is_busy, programs } = self;
        running.snapshot(archive)?;
        is_busy.snapshot(archive)?;
        programs.borrow_mut().snapshot(archive)
    }
}

impl GuestTag {
    /// Takes a side-band record; returns the number of busy harts if it has changed.
    fn follow(&mut self, record: &SideBandRecord) -> Option<BusyHarts> {
        let number = |at: usize| {
            let bytes = record.bytes.get(at..)?.first_chunk()?;
            Some(u32::from_le_bytes(*bytes))
        };
        let pid = number(0)?;
        let mut busy = None;
        let mut programs = self.programs.borrow_mut();
        match record.kind {
            regs::SB_EXEC => {
                programs.started += 1;
                let started = programs.started;
                programs.of.insert(pid, started);
                programs.interpreters.remove(&pid);
            }
            regs::SB_FORK => {
                // A process number that is used again starts a new life; a thread does not.
                let parent = number(8);
                if parent != Some(pid) {
                    programs.of.remove(&pid);
                    // A forked process begins as a copy of its parent.
                    let of_parent = parent.and_then(|parent| programs.interpreters.get(&parent));
                    match of_parent.copied() {
                        Some(interpreter) => programs.interpreters.insert(pid, interpreter),
                        None => programs.interpreters.remove(&pid),
                    };
                }
                return None;
            }
            regs::SB_MMAP => {
                programs.mapped(pid, &record.bytes);
                return None;
            }
            regs::SB_EXIT => {
                if number(4) == Some(pid) {
                    programs.interpreters.remove(&pid);
                }
                return None;
            }
            regs::SB_SWITCH => {
                let tid = number(4).unwrap_or(pid);
                self.running.set((pid, tid));
                let is_busy = tid != IDLE_TID;
                if std::mem::replace(&mut self.is_busy, is_busy) != is_busy {
                    programs.busy = match is_busy {
                        true => programs.busy.saturating_add(1),
                        false => programs.busy.saturating_sub(1),
                    };
                    busy = Some(BusyHarts(programs.busy));
                }
            }
            _ => return None,
        }
        let program = programs.of.get(&pid).copied().unwrap_or(0);
        self.cell.set(u64::from(program) << 32 | u64::from(pid));
        busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of numbers of 4 bytes, and more bytes.
    fn record(kind: u8, numbers: &[u32], rest: &[u8]) -> SideBandRecord {
        let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
        SideBandRecord { kind, bytes: numbers.chain(rest.iter().copied()).collect() }
    }

    /// A mapping of 0x20_0000 bytes of code at 0x1_0000.
    fn mapping(pid: u32, path: &str) -> SideBandRecord {
        let numbers = [pid, pid, 0x1_0000, 0, 0x20_0000, 0, 0, 0, 20];
        let rest = [&[7; 20], path.as_bytes(), &[0]].concat();
        record(regs::SB_MMAP, &numbers, &rest)
    }

    #[test]
    fn interpreters_are_known_by_what_is_mapped() {
        let mut tag = GuestTag {
            cell: Rc::default(),
            running: RunningThread::default(),
            is_busy: false,
            programs: Rc::default(),
        };
        let interpreter = |tag: &GuestTag, pid| tag.programs.borrow().interpreter(pid);
        let comm = [0; 16];
        tag.follow(&record(regs::SB_EXEC, &[5, 5], &comm));
        tag.follow(&mapping(5, "/usr/bin/perl"));
        assert_eq!(interpreter(&tag, 5), None);
        tag.follow(&mapping(5, "/usr/bin/python3.13"));
        tag.follow(&mapping(5, "/usr/lib/libc.so.6"));
        let image = Image { start: 0x1_0000, len: 0x20_0000 };
        assert_eq!(interpreter(&tag, 5), Some((1, image)));
        // A thread is no process, and a child begins as a copy.
        tag.follow(&record(regs::SB_FORK, &[5, 6, 5, 5], &[]));
        assert_eq!(interpreter(&tag, 6), None);
        tag.follow(&record(regs::SB_FORK, &[7, 7, 5, 5], &[]));
        assert_eq!(interpreter(&tag, 7), Some((1, image)));
        tag.follow(&record(regs::SB_SWITCH, &[5, 6], &comm));
        assert_eq!(tag.running.get(), (5, 6));
        // The end of a thread is not that of its process; another program is no interpreter.
        tag.follow(&record(regs::SB_EXIT, &[5, 6], &[]));
        tag.follow(&record(regs::SB_EXEC, &[7, 7], &comm));
        assert_eq!(interpreter(&tag, 5), Some((1, image)));
        assert_eq!(interpreter(&tag, 7), None);
        tag.follow(&record(regs::SB_EXIT, &[5, 5], &[]));
        assert_eq!(interpreter(&tag, 5), None);
        // Records of any kind with any bytes do no harm.
        for kind in 0..=255 {
            for len in 0..64 {
                tag.follow(&SideBandRecord { kind, bytes: vec![kind; len] });
            }
        }
    }

    #[test]
    fn harts_are_busy_while_they_run_other_threads_than_their_idle_one() {
        let programs = Rc::<RefCell<Programs>>::default();
        let mut tags = [(); 2].map(|()| GuestTag {
            cell: Rc::default(),
            running: RunningThread::default(),
            is_busy: false,
            programs: Rc::clone(&programs),
        });
        let mut switch = |hart: usize, tid: u32| {
            tags[hart].follow(&record(regs::SB_SWITCH, &[tid, tid], &[0; 16]))
        };
        assert_eq!(switch(0, 7), Some(BusyHarts(1)));
        assert_eq!(switch(1, 0), None);
        assert_eq!(switch(1, 8), Some(BusyHarts(2)));
        assert_eq!(switch(0, 9), None);
        assert_eq!(switch(0, 0), Some(BusyHarts(1)));
        assert_eq!(switch(1, 0), Some(BusyHarts(0)));
    }
}
