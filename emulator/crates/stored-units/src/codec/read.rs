//! Numbers become calls.

use commit_trace::Event;
use isa::{
    DmaLines, InstClass, MemAccess, MemKind, Operand, PageWalk, PathSegment, RUN_STEPS, Run,
    StaticId, StaticInst, Step,
};
use timing::CoreCall;

use super::{Codec, KIND_BITS, KIND_MASK, Kind, Mode, PIECE_SEGMENTS, Result};
use crate::columns::{Coder, Column, ReadColumns};
use crate::reader::UnitsError;

/// The instructions of a run that is read.
#[derive(Default)]
pub(crate) struct RunBuffers {
    steps: Vec<Step>,
    accesses: Vec<MemAccess>,
    operands: Vec<Operand>,
    segments: Vec<PathSegment>,
    bytes: Vec<u8>,
}

impl Codec {
    /// Begins to read a rest, or what a chunk has of one: reads how much of the path there is.
    pub(crate) fn begin_part(&mut self, coder: &mut ReadColumns) -> Result<()> {
        let path = &mut self.path;
        if path.learns {
            path.segments = coder.number(Column::PathCounts, 0)?;
            path.calls = coder.number(Column::PathCounts, 0)?;
            path.until_piece = 0;
        }
        Ok(())
    }

    /// Returns whether there is nothing more to read of a chunk.
    pub(crate) fn is_done(&self, coder: &ReadColumns) -> bool {
        self.path.segments == 0 && self.path.held.is_none() && coder.is_empty()
    }

    /// Reads a piece of the path.
    fn read_path<'b>(
        &mut self,
        coder: &mut ReadColumns,
        segments: &'b mut Vec<PathSegment>,
    ) -> Result<CoreCall<'b>> {
        let count = self.path.segments.min(PIECE_SEGMENTS);
        segments.clear();
        for _ in 0..count {
            segments.push(self.segment(coder, &PathSegment::default())?);
        }
        let path = &mut self.path;
        path.segments -= count;
        // Pieces lie between calls at equal distances, so that predictors can learn while caches are kept warm.
        path.until_piece = path.calls / (path.segments.div_ceil(PIECE_SEGMENTS) + 1);
        Ok(CoreCall::Path(segments))
    }

    /// Reads the number of the next call; `None`: a piece of the path comes first.
    fn next_call(&mut self, coder: &mut ReadColumns) -> Result<Option<u64>> {
        let number = match self.path.held.take() {
            Some(number) => number,
            None if self.path.segments > 0 && coder.is_empty() => return Ok(None),
            None => self.call(coder, 0)?,
        };
        let path = &mut self.path;
        if path.segments > 0 {
            let ends_rest = [Kind::Wake as u64, Kind::Rest as u64].contains(&(number & KIND_MASK));
            if ends_rest || path.until_piece == 0 {
                path.held = Some(number);
                return Ok(None);
            }
            path.until_piece -= 1;
            path.calls = path.calls.saturating_sub(1);
        }
        Ok(Some(number))
    }

    /// Reads the next call, into the buffers where it has many parts.
    pub(crate) fn read<'b>(
        &mut self,
        coder: &mut ReadColumns,
        buffers: &'b mut RunBuffers,
    ) -> Result<CoreCall<'b>> {
        use Column::Rest;
        loop {
            let Some(number) = self.next_call(coder)? else {
                return self.read_path(coder, &mut buffers.segments);
            };
            let flags = number >> KIND_BITS;
            let kind = Kind::ALL.get((number & KIND_MASK) as usize);
            let kind = *kind.ok_or(UnitsError::Damaged("no call has this number"))?;
            let is = flags & 1 != 0;
            self.calls += u64::from(kind != Kind::Mode);
            return Ok(match kind {
                Kind::Mode => {
                    self.mode = Mode::from_number(flags)?;
                    continue;
                }
                Kind::Run => CoreCall::Run(self.read_run(coder, buffers, is)?),
                Kind::WarmAccess => {
                    let (va, pa, stores) = self.warm(coder, false, (0, 0, false))?;
                    let kind = if stores { MemKind::Store } else { MemKind::Load };
                    let access = MemAccess::new(kind, va, pa, 1, false);
                    CoreCall::WarmAccess { access, translated: is }
                }
                Kind::WarmFetch => {
                    let (pc, pa, _) = self.warm(coder, true, (0, 0, false))?;
                    CoreCall::WarmFetch { pc, pa, translated: is }
                }
                Kind::Fetch => {
                    let (id, pa) = self.fetch(coder, StaticId(0), 0)?;
                    let StaticInst { inst, pc, .. } = self.known(id.0)?.inst;
                    CoreCall::Fetch { id, inst, pc, pa, translated: is }
                }
                Kind::Retire => {
                    let fetched =
                        self.fetched.take().ok_or(UnitsError::Damaged("nothing was fetched"))?;
                    CoreCall::Retire(self.executed(coder, fetched, flags, None)?)
                }
                Kind::Define => CoreCall::Define(self.define(coder, None)?),
                Kind::Translated => {
                    let (va, walk) = self.walk(coder, 0, &PageWalk::default())?;
                    CoreCall::Translated { va, walk }
                }
                Kind::Interrupt => match self.fetched.take() {
                    Some(_) => CoreCall::Interrupt,
                    None => return Err(UnitsError::Damaged("an interrupt of nothing")),
                },
                Kind::IdleUntil => CoreCall::IdleUntil(self.cycle(coder, 0)?),
                Kind::FlushTlb => CoreCall::FlushTlb,
                Kind::DmaWrite => {
                    let first = coder.number(Rest, 0)?;
                    match u32::try_from(coder.number(Rest, 0)?) {
                        Ok(count @ 1..=DmaLines::MAX_COUNT) => {
                            CoreCall::DmaWrite(DmaLines { first, count })
                        }
                        _ => {
                            return Err(UnitsError::Damaged(
                                "a device that writes nothing, or too much",
                            ));
                        }
                    }
                }
                Kind::FenceI => CoreCall::FenceI,
                Kind::Note => {
                    buffers.bytes.clear();
                    for _ in 0..coder.number(Rest, 0)? {
                        buffers.bytes.push(coder.number(Rest, 0)? as u8);
                    }
                    CoreCall::Note { kind: flags as u8, bytes: &buffers.bytes }
                }
                Kind::Privilege => CoreCall::Privilege(Mode::from_number(flags & 3)?.privilege),
                Kind::Wake => {
                    self.path.learns = false;
                    CoreCall::Wake { cycle: self.cycle(coder, 0)? }
                }
                Kind::Rest => {
                    self.path.learns = is;
                    self.begin_part(coder)?;
                    CoreCall::Rest { learns: is }
                }
                Kind::Region => CoreCall::Region(match flags {
                    0 => Event::Region(false),
                    1 => Event::Region(true),
                    2 => Event::RegionAnew,
                    _ => match u32::try_from(coder.number(Rest, 0)?) {
                        Ok(weight @ 1..=Event::MAX_WEIGHT) => Event::Weight(weight),
                        _ => {
                            return Err(UnitsError::Damaged(
                                "a unit that stands for nothing, or too much",
                            ));
                        }
                    },
                }),
            });
        }
    }

    /// Reads a run.
    fn read_run<'b>(
        &mut self,
        coder: &mut ReadColumns,
        buffers: &'b mut RunBuffers,
        divides: bool,
    ) -> Result<Run<'b>> {
        let count = coder.number(Column::Counts, 0)? as usize;
        if count == 0 || count > RUN_STEPS {
            return Err(UnitsError::Damaged("a run of too few or too many instructions"));
        }
        let RunBuffers { steps, accesses, operands, .. } = buffers;
        steps.clear();
        accesses.clear();
        operands.clear();
        let mut divisions = 0;
        let mut vpage = None;
        for _ in 0..count {
            let id = self.step(coder, 0)?;
            let StaticInst { pc, inst, .. } = self.known(id)?.inst;
            let page = *vpage.get_or_insert(pc & !0xfff);
            if inst.class.serialises() || pc & !0xfff != page {
                return Err(UnitsError::Damaged("an instruction that no run has"));
            }
            divisions += usize::from(inst.class == InstClass::IntDiv);
            steps.push(Step::new(StaticId(id), (pc & 0xfff) as u16, inst.class, inst.len));
        }
        let vpage = vpage.unwrap_or_default();
        let page = self.code_pages.code(coder, Column::CodePages, vpage >> 12, 0)? << 12;
        for step in steps.iter() {
            if self.known(step.id.0)?.inst.inst.class.accesses_memory() {
                accesses.push(self.access(coder, step.id.0, &MemAccess::default())?);
            }
        }
        if divides {
            let found = coder.number(Column::Counts, 0)? as usize;
            if found > RUN_STEPS {
                return Err(UnitsError::Damaged("too many divisions"));
            }
            for _ in 0..found {
                operands.push(Self::operand(coder, &Operand::default())?);
            }
        }
        if operands.len() != divisions {
            return Err(UnitsError::Damaged("divisions without operands"));
        }
        let next_pc = self.next_pc(coder, self.last, 0)?;
        let Mode { privilege, translated } = self.mode;
        Ok(Run { steps, accesses, operands, next_pc, vpage, page, privilege, translated })
    }
}
