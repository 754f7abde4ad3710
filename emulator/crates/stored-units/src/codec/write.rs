//! Calls become numbers.

use commit_trace::Event;
use isa::{MemKind, Privilege, Run};
use timing::CoreCall;

use super::{
    ACCESSES, Codec, DIVIDES, KIND_BITS, Kind, MOST_SEGMENTS, Mode, Result, TRAPS, access_bits,
};
use crate::columns::{Coder, Column};
use crate::reader::UnitsError;

impl Codec {
    /// Writes a call; returns as how many it will be read.
    pub fn write<C: Coder>(&mut self, coder: &mut C, call: &CoreCall<'_>) -> Result<u64> {
        use Column::{Calls, Counts, Rest};
        let begin = |coder: &mut C, kind: Kind, flags: u64| {
            coder.number(Calls, kind as u64 | flags << KIND_BITS).map(drop)
        };
        match *call {
            CoreCall::Run(ref run) => {
                self.write_mode(coder, run.privilege, run.translated)?;
                begin(coder, Kind::Run, u64::from(!run.operands.is_empty()))?;
                self.run(coder, run)?;
            }
            CoreCall::WarmAccess { ref access, translated } => {
                let stores = u64::from(access.kind() != MemKind::Load);
                begin(coder, Kind::WarmAccess, stores | u64::from(translated) << 1)?;
                self.warm(coder, false, access.va, access.pa())?;
            }
            CoreCall::WarmFetch { pc, pa, translated } => {
                begin(coder, Kind::WarmFetch, translated.into())?;
                self.warm(coder, true, pc, pa)?;
            }
            CoreCall::Path(segments) => {
                for segments in segments.chunks(MOST_SEGMENTS) {
                    begin(coder, Kind::Path, 0)?;
                    coder.number(Counts, segments.len() as u64)?;
                    for segment in segments {
                        self.segment(coder, segment)?;
                    }
                }
                return Ok(segments.len().div_ceil(MOST_SEGMENTS) as u64);
            }
            CoreCall::Fetch { id, pa, translated, .. } => {
                begin(coder, Kind::Fetch, translated.into())?;
                self.fetch(coder, id, pa)?;
            }
            CoreCall::Retire(ref executed) => {
                self.write_mode(coder, executed.privilege, executed.translated)?;
                let flag = |is: bool, flag: u64| if is { flag } else { 0 };
                let operand = executed.operand;
                let flags = flag(access_bits(&executed.mem) != 0 || executed.mem.va != 0, ACCESSES)
                    | flag(operand.dividend_bits != 0 || operand.divisor_bits != 0, DIVIDES)
                    | flag(executed.trap.is_some(), TRAPS);
                begin(coder, Kind::Retire, flags)?;
                let fetched = (executed.id, executed.fetch_pa);
                self.executed(coder, fetched, flags, Some(executed))?;
                self.fetched = None;
            }
            CoreCall::Define(ref inst) => {
                begin(coder, Kind::Define, 0)?;
                self.define(coder, Some(inst))?;
            }
            CoreCall::Translated { va, ref walk } => {
                begin(coder, Kind::Translated, 0)?;
                self.walk(coder, va, walk)?;
            }
            CoreCall::Interrupt => begin(coder, Kind::Interrupt, 0)?,
            CoreCall::IdleUntil(cycle) => {
                begin(coder, Kind::IdleUntil, 0)?;
                self.cycle(coder, cycle)?;
            }
            CoreCall::FlushTlb => begin(coder, Kind::FlushTlb, 0)?,
            CoreCall::FenceI => begin(coder, Kind::FenceI, 0)?,
            CoreCall::Note { kind, bytes } => {
                begin(coder, Kind::Note, kind.into())?;
                coder.number(Rest, bytes.len() as u64)?;
                for byte in bytes {
                    coder.number(Rest, (*byte).into())?;
                }
            }
            CoreCall::Privilege(privilege) => begin(coder, Kind::Privilege, privilege as u64)?,
            CoreCall::Wake { cycle } => {
                begin(coder, Kind::Wake, 0)?;
                self.cycle(coder, cycle)?;
            }
            CoreCall::Rest { learns } => begin(coder, Kind::Rest, learns.into())?,
            CoreCall::Region(ref event) => {
                let event = match event {
                    Event::Region(false) => 0,
                    Event::Region(true) => 1,
                    Event::RegionAnew => 2,
                    Event::Weight(_) => 3,
                    _ => return Ok(0),
                };
                begin(coder, Kind::Region, event)?;
                if let CoreCall::Region(Event::Weight(weight)) = *call {
                    coder.number(Rest, weight.into())?;
                }
            }
        }
        Ok(1)
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
            coder.number(Column::Calls, Kind::Mode as u64 | mode.number() << KIND_BITS)?;
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
