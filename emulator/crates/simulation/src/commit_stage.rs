//! What hangs on the timing core's commit stage: the TIP unit and the hart's sampling units in band, the recorder out of band.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use commit_trace::{
    Commit, CommitRecord, CommitSink, Detail, Event, InstId, RecordError, Recorder, SampledTotals,
    Stages, StaticInfo,
};
use critical_path::Excerpts;
use isa::{InstClass, SharedCycle};
use sampling_units::{Observed, Outcome, Passed, SharedUnits, StaticKind};
use snapshot::{Archive, Snapshot};
use tip_device::{Origin, SideBandRecord, TipUnit};
use truth::Collector;

/// The end of a machine's streams: all that they recorded is in the channel, which is closed.
pub struct StreamClosed {
    error: Option<RecordError>,
    /// Collectors of the truth by hart, if it was asked for.
    truth: Vec<Collector>,
    excerpts: Vec<Excerpts>,
}

impl StreamClosed {
    /// Ends the streams of all harts, even if one of them fails, and keeps the first error.
    pub fn of<const RECORDS_STAGES: bool>(
        streams: impl Iterator<Item = Stream<RECORDS_STAGES>>,
    ) -> Self {
        let mut closed = Self { error: None, truth: Vec::new(), excerpts: Vec::new() };
        for stream in streams {
            if let Err(error) = stream.recorder.finish() {
                closed.error.get_or_insert(error);
            }
            closed.truth.extend(stream.truth.map(|collector| *collector));
            closed.excerpts.extend(stream.excerpts.map(|collector| collector.finish()));
        }
        closed
    }

    /// Returns why not everything was recorded; `None`: everything was.
    pub fn error(&self) -> Option<&RecordError> {
        self.error.as_ref()
    }

    /// Takes the truth's collector of each hart; empty if nobody asked for the truth.
    pub fn take_truth(&mut self) -> Vec<Collector> {
        std::mem::take(&mut self.truth)
    }

    /// Takes the excerpts of each hart; nothing if nobody asked for them.
    pub fn take_excerpts(&mut self) -> Vec<Excerpts> {
        std::mem::take(&mut self.excerpts)
    }
}

/// The TIP unit with its side band to the host, shared by the bus adapter and the commit stage.
#[derive(Debug)]
pub struct TipPort {
    /// The unit.
    pub unit: TipUnit,
    /// Side-band records written since the last commit.
    pub side_band: Vec<SideBandRecord>,
    /// Copies of the side-band records that were written since they were taken last, if somebody takes them.
    pub copies: Option<Vec<SideBandRecord>>,
}

impl TipPort {
    /// Takes a side-band record.
    pub fn push_side_band(&mut self, record: SideBandRecord) {
        if let Some(copies) = &mut self.copies {
            copies.push(record.clone());
        }
        self.side_band.push(record);
    }

    /// Takes a record of how many harts are busy. It is in the place of one that has not been delivered yet, if nothing came after that.
    pub fn push_busy(&mut self, record: SideBandRecord) {
        self.side_band.pop_if(|last| last.kind == record.kind);
        self.side_band.push(record);
    }

    /// Returns the last cycle in which no commit concerns the unit or the side band.
    fn due(&self) -> u64 {
        if !self.side_band.is_empty() || self.unit.needs_every_commit() {
            return 0;
        }
        match self.unit.next_sample() {
            // An enabled unit without a next sample waits for another privilege.
            u64::MAX if self.unit.is_enabled() => u64::MAX - 1,
            cycle => cycle,
        }
    }
}

/// A [`TipPort`] with two owners.
#[derive(Clone, Debug)]
pub struct SharedTip {
    port: Arc<Mutex<TipPort>>,
    /// [`TipPort::due`], so that a commit costs one comparison.
    due: SharedCycle,
}

impl SharedTip {
    /// Shares a unit.
    pub fn new(unit: TipUnit) -> Self {
        let port = TipPort { unit, side_band: Vec::new(), copies: None };
        Self { due: SharedCycle::new(port.due()), port: Arc::new(Mutex::new(port)) }
    }

    fn lock(&self) -> MutexGuard<'_, TipPort> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the unit.
    pub fn read<R>(&self, read: impl FnOnce(&TipUnit) -> R) -> R {
        read(&self.lock().unit)
    }

    /// Changes the unit or the side band.
    pub fn change<R>(&self, change: impl FnOnce(&mut TipPort) -> R) -> R {
        let mut port = self.lock();
        let result = change(&mut port);
        self.due.set(port.due());
        result
    }
}

impl Snapshot for SharedTip {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        self.change(|TipPort { unit, side_band, copies: _ }| {
            unit.snapshot(archive)?;
            side_band.snapshot(archive)
        })
    }
}

/// The commit sink of one hart; `RECORDS_STAGES`: it records the cycles of all pipeline stages of each instruction, and not only those of its commit.
#[derive(Debug)]
pub struct Stream<const RECORDS_STAGES: bool> {
    tip: SharedTip,
    units: SharedUnits,
    /// The recorder, which also tells the unit what was committed last.
    recorder: Recorder,
    origins: Vec<Origin>,
    /// What the sampling units have to know, by instruction.
    kinds: Vec<StaticKind>,
    /// What samples should say, if that is asked for.
    truth: Option<Box<Collector>>,
    /// Excerpts, if they are asked for.
    excerpts: Option<Box<critical_path::Collector>>,
    /// Details of the instructions that commit next, while somebody observes.
    details: Vec<Detail>,
    /// Lowered to the cycle in which the TIP unit's interrupt line rises.
    irq_at: SharedCycle,
}

impl<const RECORDS_STAGES: bool> Stream<RECORDS_STAGES> {
    /// A sink for `tip` and the sampling units of a hart.
    pub fn new(
        tip: SharedTip,
        units: SharedUnits,
        recorder: Recorder,
        irq_at: SharedCycle,
    ) -> Self {
        Self {
            tip,
            units,
            recorder,
            origins: Vec::new(),
            kinds: Vec::new(),
            truth: None,
            excerpts: None,
            details: Vec::new(),
            irq_at,
        }
    }

    /// Returns the sink of a fork of this sink's core, from `cycle` on. Nobody reads what that sink records.
    pub fn unread(&self, cycle: u64, width: usize) -> Self {
        Self {
            origins: self.origins.clone(),
            kinds: self.kinds.clone(),
            ..Self::new(
                SharedTip::new(TipUnit::new(width, 1)),
                SharedUnits::default(),
                Recorder::discarding(cycle),
                SharedCycle::new(u64::MAX),
            )
        }
    }

    /// Sets the collector of the truth, which says what samples should say. The caller does so before any instruction is announced.
    pub fn collect_truth(&mut self, collector: Collector) {
        self.truth = Some(Box::new(collector));
    }

    /// Takes excerpts, too, when the core tells them.
    pub fn take_excerpts(&mut self, collector: critical_path::Collector) {
        self.excerpts = Some(Box::new(collector));
    }

    /// Returns the cycle, after `cycle`, from which on the next excerpt is wanted; `u64::MAX` if none is.
    pub fn next_excerpt(&self, cycle: u64) -> u64 {
        self.excerpts.as_ref().map_or(u64::MAX, |collector| collector.next(cycle))
    }

    /// Returns whether the stream collects what samples should say.
    pub fn collects_truth(&self) -> bool {
        self.truth.is_some()
    }

    /// Lets the TIP unit's interrupt write its cycle to `irq_at` from now on, and returns where it wrote the cycle before.
    pub fn raise(&mut self, irq_at: SharedCycle) -> SharedCycle {
        std::mem::replace(&mut self.irq_at, irq_at)
    }

    /// Returns the cycle up to which no commit changes anything on the bus. If the cycle is `u64::MAX`, no change of privilege
    /// lowers it.
    pub fn quiet(&self) -> SharedCycle {
        self.tip.due.clone()
    }

    /// Saves or loads the last commits before the end of `cycle`, and returns their number. Their instructions get the first ids, because nothing
    /// else is left of the stream before a checkpoint.
    pub fn recent(&mut self, cycle: u64, archive: &mut Archive<'_>) -> snapshot::Result<usize> {
        let mut recent: Vec<(Commit, (u64, u8))> = self
            .recorder
            .recent()
            .enumerate()
            .map(|(n, commit)| {
                let Origin { pc, privilege, .. } = self.origins[commit.inst.0 as usize];
                let inst = InstId(n as u32);
                (Commit { inst, ..commit }, (pc, privilege))
            })
            .collect();
        recent.snapshot(archive)?;
        if archive.is_loading() {
            let origin = |(_, (pc, privilege)): &_| Origin {
                pc: *pc,
                privilege: *privilege,
                // Only an instruction that commits is asked whether it returns from a trap; these have committed.
                trap_return: false,
            };
            self.origins = recent.iter().map(origin).collect();
            // The kinds of what has committed already are not asked for either.
            self.kinds = vec![StaticKind::default(); recent.len()];
            let commits: Vec<Commit> = recent.iter().map(|(commit, _)| *commit).collect();
            self.recorder = Recorder::going_on(cycle, &commits);
        }
        Ok(recent.len())
    }

    /// Tells the TIP unit the recent commits, and then calls `act`, which may raise the unit's interrupt line.
    fn unit(&self, act: impl FnOnce(&mut TipUnit, &dyn Fn(InstId) -> Origin) -> Option<u64>) {
        let origins = &self.origins;
        let risen = self.tip.change(|tip| {
            tip.unit.recall(self.recorder.recent());
            act(&mut tip.unit, &|id: InstId| origins[id.0 as usize])
        });
        if let Some(cycle) = risen {
            self.irq_at.set(self.irq_at.get().min(cycle));
        }
    }

    /// Returns what the sampling units have to know of a record that left in `cycle`.
    fn passed(&self, record: &CommitRecord, cycle: u64) -> Passed {
        let id = record.inst.0 as usize;
        Passed {
            pc: self.origins[id].pc,
            kind: self.kinds[id],
            outcome: Outcome::of(record),
            cycle,
            cycles: record.commit_delta.into(),
        }
    }

    /// Tells the control transfer records what passes.
    #[cold]
    #[inline(never)]
    fn record_transfers(&self, from: u64, records: &[CommitRecord]) {
        self.units.transfer_records.with(|transfer_records| {
            let mut cycle = from;
            for record in records {
                cycle += u64::from(record.commit_delta);
                transfer_records.passed(&self.passed(record, cycle));
            }
        });
    }

    /// Tells the units that look at every instruction what passes.
    #[cold]
    #[inline(never)]
    fn sample(&mut self, from: u64, records: &[CommitRecord]) {
        self.units.samplers.with(|units| {
            let mut cycle = from;
            for (record, detail) in records.iter().zip(&self.details) {
                cycle += u64::from(record.commit_delta);
                let observed = Observed { passed: &self.passed(record, cycle), detail };
                if units.instructions.is_active() {
                    units.instructions.passed(&observed);
                }
                if units.precise.is_active() {
                    units.precise.passed(record, &observed);
                }
            }
        });
    }

    /// Gives the details of what commits to those that want them.
    fn observe(&mut self, from: u64, records: &[CommitRecord]) {
        debug_assert_eq!(self.details.len(), records.len());
        if self.units.samplers.is_active() {
            self.sample(from, records);
        }
        if let Some(truth) = &mut self.truth {
            truth.commits(from, records, &self.details);
        }
        if let Some(excerpts) = &mut self.excerpts {
            excerpts.commits(from, records, &self.details);
        }
        self.details.clear();
    }

    /// Handles a commit that the unit or the side band waits for.
    #[cold]
    #[inline(never)]
    fn watch(&mut self, commit: &Commit) {
        self.unit(|unit, origin| unit.commit(commit, &origin));
        self.recorder.commit(commit);
        let side_band = self.tip.change(|tip| std::mem::take(&mut tip.side_band));
        for SideBandRecord { kind, bytes } in side_band {
            let event = Event::SideBand { kind, bytes };
            if let Some(truth) = &mut self.truth {
                truth.event(&event);
            }
            self.recorder.event(commit.commit, event);
        }
    }
}

impl<const RECORDS_STAGES: bool> CommitSink for Stream<RECORDS_STAGES> {
    const STAGES: bool = RECORDS_STAGES;

    #[inline(always)]
    fn commit(&mut self, commit: &Commit) {
        if commit.commit > self.tip.due.get() {
            self.watch(commit);
        } else {
            self.recorder.commit(commit);
        }
    }

    #[inline(always)]
    fn commits(&mut self, from: u64, records: &[CommitRecord], to: u64) {
        if self.units.transfer_records.is_active() {
            self.record_transfers(from, records);
        }
        if !self.details.is_empty() {
            self.observe(from, records);
        }
        if to <= self.tip.due.get() {
            return self.recorder.commits(from, records, to);
        }
        let mut cycle = from;
        for record in records {
            let before = cycle;
            cycle += u64::from(record.commit_delta);
            if cycle > self.tip.due.get() {
                self.watch(&record.at(cycle));
            } else {
                self.recorder.commits(before, std::slice::from_ref(record), cycle);
            }
        }
    }

    fn stages(&mut self, stages: &[Stages]) {
        self.recorder.stages(stages);
    }

    fn details(&mut self, details: &[Detail]) {
        self.details.extend_from_slice(details);
    }

    fn begin_excerpt(&mut self) {
        if let Some(excerpts) = &mut self.excerpts {
            excerpts.begin();
        }
    }

    fn end_excerpt(&mut self, cycle: u64) -> u64 {
        if let Some(excerpts) = &mut self.excerpts {
            excerpts.end();
        }
        self.next_excerpt(cycle)
    }

    fn sampled(&self) -> SampledTotals {
        let totals = self.units.samplers.with(|units| units.instructions.totals());
        SampledTotals {
            recorded: totals.samples,
            collided: totals.collisions,
            filtered: totals.filtered,
            dropped: totals.dropped,
        }
    }

    fn define(&mut self, static_info: &StaticInfo) {
        if let Some(truth) = &mut self.truth {
            truth.define(static_info);
        }
        debug_assert_eq!(static_info.id.0 as usize, self.origins.len());
        self.origins.push(Origin {
            pc: static_info.pc,
            privilege: static_info.privilege,
            trap_return: isa::decode(static_info.raw).class == InstClass::Xret,
        });
        self.kinds.push(StaticKind::of(static_info.raw));
        self.recorder.define(static_info);
    }

    fn event(&mut self, cycle: u64, event: Event) {
        if let Some(truth) = &mut self.truth {
            truth.event(&event);
        }
        if let Some(excerpts) = &mut self.excerpts {
            excerpts.event(&event);
        }
        match event {
            Event::Idle { cycles } => {
                self.unit(|unit, origin| unit.slept(cycles, &origin));
                let records = &self.units.transfer_records;
                records.with(|records| records.slept(cycles));
            }
            Event::Privilege(privilege) => {
                self.tip.change(|tip| tip.unit.privilege(privilege, cycle));
                let records = &self.units.transfer_records;
                records.with(|records| records.set_privilege(privilege));
                let sampling = &self.units.samplers;
                sampling.with(|units| units.instructions.set_privilege(privilege));
            }
            _ => {}
        }
        self.recorder.event(cycle, event);
    }
}
