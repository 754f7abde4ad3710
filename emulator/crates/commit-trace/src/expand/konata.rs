//! Konata's pipeline view: the Kanata log format, version 4.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use super::{Disassembler, RecordSink, Registers, RegistersOf};
use crate::{Retired, TeaEvents};

/// Lines that wait for their cycle at most: a log cannot go back in time, and the instructions of the
/// largest ROB (2048 entries) need no more.
const WAITING: usize = 1 << 16;

/// Writes a Kanata log (`docs/kanata-log-format.md` of Konata). Stages: F fetch, Dc decode and rename, Ds dispatch
/// and the wait in the ROB, X issued, Cm complete, up to and with the commit. F, X and the start of Cm need a
/// run that recorded stages; without, an instruction is in Ds until it commits. An instruction depends on those of the log that
/// wrote its registers last, which the log says (W) in the cycle of the issue, or of the dispatch without stages. What an
/// instruction reads from memory is no dependence here, as a trace has no addresses.
pub struct Konata<'a, W> {
    out: W,
    disassemble: &'a Disassembler<'a>,
    registers_of: &'a RegistersOf<'a>,
    /// By register: the instruction that wrote it last, by its number in the log.
    writers: [Option<u64>; 64],
    waiting: BinaryHeap<Reverse<Line>>,
    /// Cycle of the line written last; `None` before the first.
    now: Option<u64>,
    /// Number of lines so far: lines of one cycle come in the order in which they were made.
    lines: u64,
    instructions: u64,
    retired: u64,
}

/// Cycle, order, text.
type Line = (u64, u64, String);

impl<'a, W: io::Write> Konata<'a, W> {
    /// Writes to `out`, many small pieces.
    ///
    /// # Errors
    /// If the header cannot be written.
    pub fn new(
        mut out: W,
        disassemble: &'a Disassembler<'a>,
        registers_of: &'a RegistersOf<'a>,
    ) -> io::Result<Self> {
        writeln!(out, "Kanata\t0004")?;
        Ok(Self {
            out,
            disassemble,
            registers_of,
            writers: [None; 64],
            waiting: BinaryHeap::new(),
            now: None,
            lines: 0,
            instructions: 0,
            retired: 0,
        })
    }

    fn line(&mut self, cycle: u64, text: String) {
        let cycle = cycle.max(self.now.unwrap_or(0));
        self.waiting.push(Reverse((cycle, self.lines, text)));
        self.lines += 1;
    }

    /// Returns the instructions that wrote an instruction's operands, the oldest first, and notes what it writes itself, unless
    /// it traps.
    fn producers(&mut self, id: u64, retired: &Retired<'_>) -> Vec<u64> {
        let Registers { sources, destination } = (self.registers_of)(retired.static_info);
        let known = |register: &u8| (1..64).contains(register);
        let sources = sources.into_iter().filter(known);
        let mut found: Vec<u64> =
            sources.filter_map(|register| self.writers[usize::from(register)]).collect();
        found.sort_unstable();
        found.dedup();
        if known(&destination) && !retired.commit.redirect.is_trap() {
            self.writers[usize::from(destination)] = Some(id);
        }
        found
    }

    /// Writes the lines before `cycle`, and those that are too many to wait.
    fn write_to(&mut self, cycle: u64) -> io::Result<()> {
        while let Some(Reverse((next, ..))) = self.waiting.peek()
            && (*next < cycle || self.waiting.len() > WAITING)
            && let Some(Reverse((at, _, text))) = self.waiting.pop()
        {
            match self.now {
                None => writeln!(self.out, "C=\t{at}")?,
                Some(now) if now < at => writeln!(self.out, "C\t{}", at - now)?,
                Some(_) => {}
            }
            self.now = Some(at);
            self.out.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

/// The stages with the cycles in which they start; each ends where the next one starts.
fn stages(retired: &Retired<'_>) -> Vec<(u64, &'static str)> {
    let commit = &retired.commit;
    let mut found = vec![(commit.decode, "Dc"), (retired.dispatched(), "Ds")];
    if let Some(stages) = &retired.stages {
        found.insert(0, (stages.fetch, "F"));
        found.extend(stages.issue.map(|issue| (issue, "X")));
        found.push((stages.complete, "Cm"));
    } else {
        found.push((commit.commit, "Cm"));
    }
    found
}

impl<W: io::Write> RecordSink for Konata<'_, W> {
    fn record(&mut self, retired: &Retired<'_>) -> io::Result<()> {
        let id = self.instructions;
        self.instructions += 1;
        let stages = stages(retired);
        let (commit, static_info) = (&retired.commit, retired.static_info);
        let first = stages.first().map_or(commit.commit, |(cycle, _)| *cycle);
        // Fetch is in order: nothing that starts earlier follows.
        self.write_to(first)?;

        let text = (self.disassemble)(static_info);
        let (seq, thread) = (retired.seq.0, retired.hart.0);
        let mut detail = format!(
            "record {seq}, space {}, privilege {}, waited for {:?}, redirect {:?}",
            static_info.space, static_info.privilege, commit.class, commit.redirect
        );
        if commit.tea != TeaEvents::default() {
            detail += &format!(", TEA {}", commit.tea);
        }
        self.line(
            first,
            format!(
                "I\t{id}\t{seq}\t{thread}\nL\t{id}\t0\t{:x}: {text}\nL\t{id}\t1\t{detail}\n",
                static_info.pc
            ),
        );
        let producers = self.producers(id, retired);
        let issue = retired.stages.and_then(|stages| stages.issue);
        let woken = issue.unwrap_or(retired.dispatched());
        for producer in producers {
            self.line(woken.min(commit.commit).max(first), format!("W\t{id}\t{producer}\t0\n"));
        }
        let end = commit.commit.saturating_add(1);
        let mut start = first;
        for (n, &(cycle, name)) in stages.iter().enumerate() {
            start = start.max(cycle).min(commit.commit);
            let next = stages.get(n + 1).map_or(end, |(cycle, _)| *cycle);
            // A stage of no cycles is not drawn.
            if next > start {
                self.line(start, format!("S\t{id}\t0\t{name}\n"));
                self.line(next.min(end), format!("E\t{id}\t0\t{name}\n"));
            }
        }
        let flushed = u32::from(commit.redirect.is_trap());
        let number = self.retired;
        self.line(end, format!("R\t{id}\t{number}\t{flushed}\n"));
        self.retired += u64::from(flushed == 0);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_to(u64::MAX)?;
        self.out.flush()
    }
}
