//! `tipsim trace dump`: records as text.

use std::io::{self, Write};

use commit_trace::expand::{RecordSink, expand};
use commit_trace::{Event, Position, Redirect, Retired};
use profile::describe_side_band;

use super::gaps::UnitGaps;
use super::{Part, ended, is_sampled, open};
use crate::cli::DumpArgs;
use crate::symbol_sources::names::disassemble;

/// Records without `--to` or `--count`.
const DEFAULT_COUNT: u64 = 1000;

/// Prints records with absolute cycles, one a line.
pub(super) fn dump(args: &DumpArgs) -> anyhow::Result<u8> {
    let mut reader = open(&args.trace)?;
    let Part { hart, range } = args.part.of(&args.trace, &reader)?;
    let count = match (args.count, range.to) {
        (Some(count), _) => count,
        (None, Some(_)) => u64::MAX,
        (None, None) => DEFAULT_COUNT,
    };
    let gaps = UnitGaps::new(is_sampled(&reader), range.from == Position::START);
    let mut lines = Lines { out: io::BufWriter::new(io::stdout().lock()), left: count, gaps };
    let header = writeln!(
        lines.out,
        "{:>10} {:>12} {:>12} {:>12}  {:18} instruction",
        "record", "decode", "dispatch", "commit", "pc"
    );
    if let Err(e) = header {
        return ended(&args.trace, &reader, None, Err(e.into()));
    }
    let read = match count {
        0 => lines.finish().map(|()| std::ops::ControlFlow::Break(())).map_err(Into::into),
        _ => expand(&mut reader, hart, &range, &mut lines),
    };
    ended(&args.trace, &reader, None, read)
}

struct Lines<W: Write> {
    out: W,
    left: u64,
    gaps: UnitGaps,
}

impl<W: Write> RecordSink for Lines<W> {
    fn record(&mut self, retired: &Retired<'_>) -> io::Result<()> {
        let (seq, commit, static_info) = (retired.seq.0, &retired.commit, retired.static_info);
        let redirect = match commit.redirect {
            Redirect::None => String::new(),
            redirect => format!("  <{redirect:?}>"),
        };
        self.left -= 1;
        self.gaps.works();
        writeln!(
            self.out,
            "{seq:>10} {:>12} {:>12} {:>12}  {:#018x} {}{redirect}",
            commit.decode,
            commit.dispatch,
            commit.commit,
            static_info.pc,
            disassemble(static_info.raw, static_info.pc)
        )
    }

    fn event(&mut self, _cycle: u64, event: &Event) -> io::Result<()> {
        let is_gap = self.gaps.event(event);
        match event {
            Event::Idle { cycles } if is_gap => {
                writeln!(self.out, "{:>10} between units: {cycles} cycles", "")
            }
            Event::SideBand { kind, bytes } => {
                writeln!(self.out, "{:>10} {}", "", describe_side_band(*kind, bytes))
            }
            event => writeln!(self.out, "{:>10} {event:?}", ""),
        }
    }

    fn is_full(&self) -> bool {
        self.left == 0
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
