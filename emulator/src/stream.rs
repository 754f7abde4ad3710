//! What hangs on the timing core's commit stage: the TIP unit in band, the recorder out of band.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use commit_trace::{Commit, CommitSink, Event, InstFacts, InstId, Recorder};
use tip_device::{Origin, SideBandRecord, TipUnit};

/// The unit and what it has to say to the host, shared by the bus adapter and the commit stage.
#[derive(Debug)]
pub struct TipPort {
    /// The unit.
    pub unit: TipUnit,
    /// Side-band records written since the last commit.
    pub side_band: Vec<SideBandRecord>,
}

/// The commit sink of one hart.
#[derive(Debug)]
pub struct Stream {
    tip: Rc<RefCell<TipPort>>,
    recorder: Option<Recorder>,
    origins: Vec<Origin>,
    /// Lowered to the cycle in which the TIP unit's interrupt line rises.
    irq_at: Rc<Cell<u64>>,
}

impl Stream {
    /// A sink for `tip` that records only if there is a recorder.
    pub fn new(
        tip: Rc<RefCell<TipPort>>,
        recorder: Option<Recorder>,
        irq_at: Rc<Cell<u64>>,
    ) -> Self {
        Self {
            tip,
            recorder,
            origins: Vec::new(),
            irq_at,
        }
    }

    /// The recorder, to finish it.
    pub fn take_recorder(&mut self) -> Option<Recorder> {
        self.recorder.take()
    }

    fn rose(&self, cycle: Option<u64>) {
        if let Some(cycle) = cycle {
            self.irq_at.set(self.irq_at.get().min(cycle));
        }
    }

    #[cold]
    fn drain_side_band(
        recorder: &mut Option<Recorder>,
        records: &mut Vec<SideBandRecord>,
        cycle: u64,
    ) {
        for SideBandRecord { kind, bytes } in records.drain(..) {
            if let Some(recorder) = recorder {
                recorder.event(cycle, Event::SideBand { kind, bytes });
            }
        }
    }
}

impl CommitSink for Stream {
    #[inline]
    fn commit(&mut self, commit: &Commit) {
        let origins = &self.origins;
        let mut tip = self.tip.borrow_mut();
        let risen = tip
            .unit
            .commit(commit, &|id: InstId| origins[id.0 as usize]);
        if let Some(recorder) = &mut self.recorder {
            recorder.commit(commit);
        }
        if !tip.side_band.is_empty() {
            Self::drain_side_band(&mut self.recorder, &mut tip.side_band, commit.commit);
        }
        drop(tip);
        self.rose(risen);
    }

    fn define(&mut self, facts: &InstFacts) {
        debug_assert_eq!(facts.id.0 as usize, self.origins.len());
        self.origins.push(Origin {
            pc: facts.pc,
            privilege: facts.privilege,
        });
        if let Some(recorder) = &mut self.recorder {
            recorder.define(facts);
        }
    }

    fn event(&mut self, cycle: u64, event: Event) {
        let origins = &self.origins;
        let mut tip = self.tip.borrow_mut();
        let risen = match event {
            Event::Idle { cycles } => tip.unit.slept(cycles, &|id: InstId| origins[id.0 as usize]),
            Event::Privilege(privilege) => {
                tip.unit.privilege(privilege, cycle);
                None
            }
            _ => None,
        };
        drop(tip);
        self.rose(risen);
        if let Some(recorder) = &mut self.recorder {
            recorder.event(cycle, event);
        }
    }
}
