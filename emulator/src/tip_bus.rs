//! A TIP unit on the bus: offsets become register names, side-band records become guest context.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use devices::{AccessFault, Cx, Device};
use snapshot::{Archive, Snapshot};
use tip_device::{Reg, SideBandRecord, TipUnit, WriteEffect, regs};

use crate::stream::{SharedTip, TipPort};

/// The unit as a device.
#[derive(Debug)]
pub struct TipBus {
    tip: SharedTip,
    /// Those of the other harts.
    others: Vec<SharedTip>,
    tag: GuestTag,
}

impl TipBus {
    /// Puts the unit of a hart that watches `guest_tag` on a bus; all units know of the same `programs`.
    pub fn new(
        tip: SharedTip,
        others: Vec<SharedTip>,
        guest_tag: Rc<Cell<u64>>,
        programs: Rc<RefCell<Programs>>,
    ) -> Self {
        Self {
            tip,
            others,
            tag: GuestTag {
                cell: guest_tag,
                programs,
            },
        }
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
        let reg = (size == 8)
            .then(|| Reg::at(offset))
            .flatten()
            .ok_or(AccessFault)?;
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
        let reg = (size == 8)
            .then(|| Reg::at(offset))
            .flatten()
            .ok_or(AccessFault)?;
        self.write_samples(cx);
        self.tip.change(|tip| {
            if let WriteEffect::SideBand(record) = tip.unit.write(reg, value, cx.now) {
                self.tag.follow(&record);
                // Every stream knows all processes; what runs and wakes is a hart's own.
                if !matches!(record.kind, regs::SB_SWITCH | regs::SB_WAKE) {
                    for other in &self.others {
                        other.change(|other| other.side_band.push(record.clone()));
                    }
                }
                tip.side_band.push(record);
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

/// The programs that processes run.
#[derive(Debug, Default)]
pub struct Programs {
    /// By process: the programs started when its own was.
    of: HashMap<u32, u32>,
    started: u32,
}

snapshot::snapshot!(Programs { of, started });

/// Tells the hart which program runs: (programs started when it was, process). Two programs of one
/// process, before and after `exec`, are different address spaces to the profilers.
#[derive(Debug)]
struct GuestTag {
    cell: Rc<Cell<u64>>,
    programs: Rc<RefCell<Programs>>,
}

/// Every unit saves the programs.
impl Snapshot for GuestTag {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self { cell: _, programs } = self;
        programs.borrow_mut().snapshot(archive)
    }
}

impl GuestTag {
    fn follow(&mut self, record: &SideBandRecord) {
        let Some(pid) = record.bytes.first_chunk().map(|b| u32::from_le_bytes(*b)) else {
            return;
        };
        let mut programs = self.programs.borrow_mut();
        match record.kind {
            regs::SB_EXEC => {
                programs.started += 1;
                let started = programs.started;
                programs.of.insert(pid, started);
            }
            regs::SB_FORK => {
                // A process number that is used again starts a new life; a thread does not.
                let parent = record.bytes.get(8..12).map(|b| [b[0], b[1], b[2], b[3]]);
                if parent.map(u32::from_le_bytes) != Some(pid) {
                    programs.of.remove(&pid);
                }
                return;
            }
            regs::SB_SWITCH => {}
            _ => return,
        }
        let program = programs.of.get(&pid).copied().unwrap_or(0);
        self.cell.set(u64::from(program) << 32 | u64::from(pid));
    }
}
