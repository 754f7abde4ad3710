//! Calls become numbers.

use commit_trace::Event;
use isa::{MemKind, PathSegment, Privilege, Run};
use timing::CoreCall;

use super::{ACCESSES, Codec, DIVIDES, KIND_BITS, Kind, Mode, Result, TRAPS, access_bits};
use crate::columns::{Coder, Column};
use crate::reader::UnitsError;

impl Codec {
    /// Begins to write a call.
    #[inline]
    fn begin<C: Coder>(&mut self, coder: &mut C, kind: Kind, flags: u64) -> Result<()> {
        self.calls += 1;
        self.path.calls += 1;
        self.call(coder, kind as u64 | flags << KIND_BITS).map(drop)
    }

    /// Ends the columns of a chunk.
    pub(crate) fn end_chunk<C: Coder>(&mut self, coder: &mut C) -> Result<()> {
        if self.path.learns {
            coder.number(Column::PathCounts, std::mem::take(&mut self.path.segments))?;
            coder.number(Column::PathCounts, std::mem::take(&mut self.path.calls))?;
        }
        Ok(())
    }

    /// Returns whether predictors learn from a path, so that how much of it was written depends on when the hart gives its log.
    pub(crate) fn learns(&self) -> bool {
        self.path.learns
    }

    /// Writes segments of the path, joined where one follows the other in memory, but for the last one.
    fn write_path<C: Coder>(&mut self, coder: &mut C, segments: &[PathSegment]) -> Result<()> {
        if !self.path.learns && !segments.is_empty() {
            return Err(UnitsError::Damaged("a path from which nothing learns"));
        }
        for segment in segments.iter().filter(|segment| segment.lengths.count() > 0) {
            let next = match &mut self.path.last {
                Some(last) => last.join(*segment),
                None => Some(*segment),
            };
            if let Some(next) = next {
                self.end_path(coder)?;
                self.path.last = Some(next);
            }
        }
        Ok(())
    }

    /// Ends the path: writes its last segment.
    pub(crate) fn end_path<C: Coder>(&mut self, coder: &mut C) -> Result<()> {
        let Some(mut last) = self.path.last.take() else { return Ok(()) };
        if last.kind().is_none() {
            last.target_and_tag = 0;
        }
        self.segment(coder, &last)?;
        self.path.segments += 1;
        Ok(())
    }

    /// Writes that a rest begins, or that the core wakes.
    fn switch<C: Coder>(&mut self, coder: &mut C, kind: Kind, learns: bool) -> Result<()> {
        self.end_path(coder)?;
        self.end_chunk(coder)?;
        self.begin(coder, kind, learns.into())?;
        self.path.learns = learns;
        self.path.calls = 0;
        Ok(())
    }

    /// Writes a call.
    pub(crate) fn write<C: Coder>(&mut self, coder: &mut C, call: &CoreCall<'_>) -> Result<()> {
        use Column::Rest;
        match *call {
            CoreCall::Run(ref run) => {
                self.write_mode(coder, run.privilege, run.translated)?;
                self.begin(coder, Kind::Run, u64::from(!run.operands.is_empty()))?;
                self.run(coder, run)?;
            }
            CoreCall::WarmAccess { ref access, translated } => {
                self.begin(coder, Kind::WarmAccess, translated.into())?;
                let stores = access.kind() != MemKind::Load;
                self.warm(coder, false, (access.va, access.pa(), stores))?;
            }
            CoreCall::WarmFetch { pc, pa, translated } => {
                self.begin(coder, Kind::WarmFetch, translated.into())?;
                self.warm(coder, true, (pc, pa, false))?;
            }
            CoreCall::Path(segments) => self.write_path(coder, segments)?,
            CoreCall::Fetch { id, pa, translated, .. } => {
                self.begin(coder, Kind::Fetch, translated.into())?;
                self.fetch(coder, id, pa)?;
            }
            CoreCall::Retire(ref executed) => {
                self.write_mode(coder, executed.privilege, executed.translated)?;
                let flag = |is: bool, flag: u64| if is { flag } else { 0 };
                let operand = executed.operand;
                let flags = flag(access_bits(&executed.mem) != 0 || executed.mem.va != 0, ACCESSES)
                    | flag(operand.dividend_bits != 0 || operand.divisor_bits != 0, DIVIDES)
                    | flag(executed.trap.is_some(), TRAPS);
                self.begin(coder, Kind::Retire, flags)?;
                let fetched = (executed.id, executed.fetch_pa);
                self.executed(coder, fetched, flags, Some(executed))?;
                self.fetched = None;
            }
            CoreCall::Define(ref inst) => {
                self.begin(coder, Kind::Define, 0)?;
                self.define(coder, Some(inst))?;
            }
            CoreCall::Translated { va, ref walk } => {
                self.begin(coder, Kind::Translated, 0)?;
                self.walk(coder, va, walk)?;
            }
            CoreCall::Interrupt => self.begin(coder, Kind::Interrupt, 0)?,
            CoreCall::IdleUntil(cycle) => {
                self.begin(coder, Kind::IdleUntil, 0)?;
                self.cycle(coder, cycle)?;
            }
            CoreCall::FlushTlb => self.begin(coder, Kind::FlushTlb, 0)?,
            CoreCall::DmaWrite(lines) => {
                self.begin(coder, Kind::DmaWrite, 0)?;
                coder.number(Rest, lines.first)?;
                coder.number(Rest, lines.count.into())?;
            }
            CoreCall::FenceI => self.begin(coder, Kind::FenceI, 0)?,
            CoreCall::Note { kind, bytes } => {
                self.begin(coder, Kind::Note, kind.into())?;
                coder.number(Rest, bytes.len() as u64)?;
                for byte in bytes {
                    coder.number(Rest, (*byte).into())?;
                }
            }
            CoreCall::Privilege(privilege) => {
                self.begin(coder, Kind::Privilege, privilege as u64)?
            }
            CoreCall::Wake { cycle } => {
                self.switch(coder, Kind::Wake, false)?;
                self.cycle(coder, cycle)?;
            }
            CoreCall::Rest { learns } => self.switch(coder, Kind::Rest, learns)?,
            CoreCall::Region(ref event) => {
                let event = match event {
                    Event::Region(false) => 0,
                    Event::Region(true) => 1,
                    Event::RegionAnew => 2,
                    Event::Weight(_) => 3,
                    _ => return Ok(()),
                };
                self.begin(coder, Kind::Region, event)?;
                if let CoreCall::Region(Event::Weight(weight)) = *call {
                    coder.number(Rest, weight.into())?;
                }
            }
        }
        Ok(())
    }

    /// Writes that privilege or address translation has changed, if it has.
    fn write_mode<C: Coder>(
        &mut self,
        coder: &mut C,
        privilege: Privilege,
        translated: bool,
    ) -> Result<()> {
        let mode = Mode { privilege, translated };
        if mode != self.mode {
            self.mode = mode;
            self.call(coder, Kind::Mode as u64 | mode.number() << KIND_BITS)?;
        }
        Ok(())
    }

    /// Writes a run.
    fn run<C: Coder>(&mut self, coder: &mut C, run: &Run<'_>) -> Result<()> {
        coder.number(Column::Counts, run.steps.len() as u64)?;
        for step in run.steps {
            self.step(coder, step.id.0)?;
        }
        self.code_pages.code(coder, Column::CodePages, run.vpage >> 12, run.page >> 12)?;
        let mut accesses = run.accesses.iter();
        for step in run.steps {
            if self.known(step.id.0)?.inst.inst.class.accesses_memory() {
                let access =
                    accesses.next().ok_or(UnitsError::Damaged("a run without its accesses"))?;
                self.access(coder, step.id.0, access)?;
            }
        }
        if !run.operands.is_empty() {
            coder.number(Column::Counts, run.operands.len() as u64)?;
            for operand in run.operands {
                Self::operand(coder, operand)?;
            }
        }
        self.next_pc(coder, self.last, run.next_pc)?;
        Ok(())
    }
}
