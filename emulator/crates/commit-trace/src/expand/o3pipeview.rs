//! gem5's O3PipeView, which `util/o3-pipeview.py` and Konata read.

use std::io;

use super::{Disassembler, RecordSink};
use crate::Retired;

/// Ticks in a cycle, as gem5's viewer takes them by default (`--cycle-time`).
const TICKS: u64 = 1000;

/// Writes O3PipeView lines, as `src/cpu/o3/dyn_inst.cc` of gem5 prints them. A stage that is not known or
/// was not reached is 0; a trap does not retire. Fetch, which viewers cannot do without, is decode if the
/// run did not record stages. Decode and rename are one stage in BOOM. The cycle of a store's write is not
/// known.
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
        let Retired {
            seq,
            commit,
            stages,
            facts,
            ..
        } = retired;
        let tick = |cycle: u64| cycle.saturating_mul(TICKS);
        let fetch = tick(stages.map_or(commit.decode, |s| s.fetch));
        let text = (self.disassemble)(facts);
        let decode = tick(commit.decode);
        let retire = match commit.redirect.is_trap() {
            true => 0,
            false => tick(commit.commit),
        };
        let out = &mut self.out;
        writeln!(
            out,
            "O3PipeView:fetch:{fetch}:{:#010x}:0:{}:{text}",
            facts.pc, seq.0
        )?;
        for (stage, tick) in [
            ("decode", decode),
            ("rename", decode),
            ("dispatch", tick(retired.dispatched())),
            ("issue", stages.and_then(|s| s.issue).map_or(0, tick)),
            ("complete", stages.map_or(0, |s| tick(s.complete))),
        ] {
            writeln!(out, "O3PipeView:{stage}:{tick}")?;
        }
        writeln!(out, "O3PipeView:retire:{retire}:store:0")
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
