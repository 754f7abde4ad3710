//! gem5's O3PipeView, which `util/o3-pipeview.py` and Konata read.

use std::io;

use super::{Disassembler, RecordSink};
use crate::Retired;

/// Ticks in a cycle, as gem5's viewer takes them by default (`--cycle-time`).
const TICKS: u64 = 1000;

/// Writes O3PipeView lines, as `src/cpu/o3/dyn_inst.cc` of gem5 prints them. Viewers take a stage with tick 0
/// for one that a squashed instruction did not reach, so only traps have such a stage: they do not retire. A stage
/// that is not known has the tick of a neighbour: without recorded stages fetch is decode, issue is dispatch, and
/// completion is the commit. Decode and rename are one stage in BOOM. When a store is written is not known.
pub struct O3PipeView<'a, W> {
    out: W,
    disassemble: &'a Disassembler<'a>,
}

impl<'a, W: io::Write> O3PipeView<'a, W> {
    /// Writes to `out`, many small pieces.
    pub fn new(out: W, disassemble: &'a Disassembler<'a>) -> Self {
        Self { out, disassemble }
    }
}

impl<W: io::Write> RecordSink for O3PipeView<'_, W> {
    fn record(&mut self, retired: &Retired<'_>) -> io::Result<()> {
        let Retired { seq, commit, stages, static_info, .. } = retired;
        let tick = |cycle: u64| cycle.saturating_mul(TICKS);
        let fetch = tick(stages.map_or(commit.decode, |s| s.fetch));
        let text = (self.disassemble)(static_info);
        let decode = tick(commit.decode);
        let dispatch = tick(retired.dispatched());
        let issue = stages.and_then(|s| s.issue).map_or(dispatch, tick);
        let complete = tick(stages.map_or(commit.commit, |s| s.complete));
        let retire = match commit.redirect.is_trap() {
            true => 0,
            false => tick(commit.commit),
        };
        let out = &mut self.out;
        writeln!(out, "O3PipeView:fetch:{fetch}:{:#010x}:0:{}:{text}", static_info.pc, seq.0)?;
        for (stage, tick) in [
            ("decode", decode),
            ("rename", decode),
            ("dispatch", dispatch),
            ("issue", issue),
            ("complete", complete),
        ] {
            writeln!(out, "O3PipeView:{stage}:{tick}")?;
        }
        writeln!(out, "O3PipeView:retire:{retire}:store:0")
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
